// Two archives: one collects the fields' windows for saving, the other fills them.
#include "apps/checkpoint/state_file.h"

#include <cstring>
#include <set>

#include "apps/model/safetensors.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

template <class T>
std::string to_exact(T v) {
  char digits[64];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, v);
  CHECK(error == std::errc());
  return {digits, end};
}

class Saver final : public Archive {
 public:
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& v) override {
    CHECK(bool(v), "state must exist before it is visited:", name);
    add(name, v);
  }
  void operator()(const std::string& name, int64_t& v) override { add(name, "int ", to_exact(v)); }
  void operator()(const std::string& name, double& v) override { add(name, "real ", to_exact(v)); }
  void operator()(const std::string& name, std::string& v) override {
    Tensor bytes({int64_t(v.size())}, kU8);
    std::memcpy(bytes.raw(), v.data(), v.size());
    add(name, bytes);
  }

  TensorFile file;

 private:
  void add(const std::string& name, const Tensor& v) {
    CHECK(seen_.insert(name).second, "two fields of one name:", name);
    file.tensors.emplace_back(name, v);
  }
  void add(const std::string& name, const char* kind, const std::string& v) {
    CHECK(seen_.insert(name).second, "two fields of one name:", name);
    file.metadata[name] = kind + v;
  }
  std::set<std::string> seen_;
};

class Loader final : public Archive {
 public:
  Loader(std::string path, TensorFile file) : path_(std::move(path)), metadata_(std::move(file.metadata)) {
    for (auto& [name, tensor] : file.tensors) tensors_.emplace(name, tensor);
  }
  bool loading() const override { return true; }
  void operator()(const std::string& name, Tensor& v) override {
    CHECK(bool(v), "state must exist before it is visited:", name);
    const Tensor t = take(name);
    if (t.shape() != v.shape() || t.dtype() != v.dtype())
      refuse(text("the field '", name, "' is ", t.dtype(), ' ', t.shape(), " there and ", v.dtype(), ' ',
                  v.shape(), " in this run"));
    copy_bytes(v, t);
  }
  void operator()(const std::string& name, int64_t& v) override { parse(name, "int ", v); }
  void operator()(const std::string& name, double& v) override { parse(name, "real ", v); }
  void operator()(const std::string& name, std::string& v) override {
    const Tensor t = take(name);
    if (t.dtype() != kU8)
      refuse(text("the field '", name, "' is ", t.dtype(), " there and a string in this run"));
    v.assign(reinterpret_cast<const char*>(t.raw()), size_t(t.size()));
  }
  void finish() const {
    if (!tensors_.empty())
      refuse(text("holds '", tensors_.begin()->first, "', which this run does not read"));
    if (!metadata_.empty())
      refuse(text("holds '", metadata_.begin()->first, "', which this run does not read"));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadFile(text(path_, ": ", why, "; resume with the options and the version that wrote it"));
  }
  Tensor take(const std::string& name) {
    const auto at = tensors_.find(name);
    if (at == tensors_.end()) refuse(text("lacks the field '", name, "'"));
    const Tensor t = at->second;
    tensors_.erase(at);
    return t;
  }
  template <class T>
  void parse(const std::string& name, const std::string& kind, T& v) {
    const auto at = metadata_.find(name);
    if (at == metadata_.end()) refuse(text("lacks the field '", name, "'"));
    const std::string& s = at->second;
    const auto number = s.starts_with(kind) ? number_in<T>(s.substr(kind.size())) : std::nullopt;
    if (!number) refuse(text("the field '", name, "' is '", s, "', not a number of the kind ", kind));
    v = *number;
    metadata_.erase(at);
  }
  const std::string path_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::string save_state(const std::string& path, const Walk& walk) {
  Saver saver;
  walk(saver);
  return write_safetensors(path, saver.file);
}

void load_state(const std::string& path, const std::string& checksum, const Walk& walk) {
  Loader loader(path, read_safetensors(path, checksum));
  walk(loader);
  loader.finish();
}

}  // namespace skein::apps
