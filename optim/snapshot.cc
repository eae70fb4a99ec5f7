// Snapshot: two archives over one map of fields.
#include "optim/snapshot.h"

namespace skein::optim {

class Snapshot::Saver final : public Archive {
 public:
  explicit Saver(Snapshot& s) : fields_(s.fields_) {}
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& v) override {
    auto& field = fields_[name];
    Tensor* kept = std::get_if<Tensor>(&field);
    if (kept && v && kept->shape() == v.shape() && kept->device() == v.device() && kept->dtype() == v.dtype())
      copy_aside(*kept, v);
    else
      field = v ? v.clone() : Tensor();
  }
  void operator()(const std::string& name, int64_t& v) override { fields_[name] = v; }
  void operator()(const std::string& name, double& v) override { fields_[name] = v; }
  void operator()(const std::string& name, std::string& v) override { fields_[name] = v; }

 private:
  Fields& fields_;
};

class Snapshot::Loader final : public Archive {
 public:
  explicit Loader(Snapshot& s) : fields_(s.fields_) {}
  bool loading() const override { return true; }
  void operator()(const std::string& name, Tensor& v) override {
    const Tensor& kept = field<Tensor>(name);
    if (kept) copy_bytes(v, kept);
  }
  void operator()(const std::string& name, int64_t& v) override { v = field<int64_t>(name); }
  void operator()(const std::string& name, double& v) override { v = field<double>(name); }
  void operator()(const std::string& name, std::string& v) override { v = field<std::string>(name); }

 private:
  template <class T>
  const T& field(const std::string& name) {
    const auto at = fields_.find(name);
    CHECK(at != fields_.end() && std::holds_alternative<T>(at->second),
          "no such field in the snapshot:", name);
    return std::get<T>(at->second);
  }
  Fields& fields_;
};

class Snapshot::Completer final : public Archive {
 public:
  explicit Completer(Snapshot& s) : saver_(s), fields_(s.fields_) {}
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& v) override { add(name, v); }
  void operator()(const std::string& name, int64_t& v) override {
    const auto at = fields_.find(name);
    const int64_t* const had = at == fields_.end() ? nullptr : std::get_if<int64_t>(&at->second);
    adds_ = had && *had == kUnderWay;
    add(name, v);
  }
  void operator()(const std::string& name, double& v) override { add(name, v); }
  void operator()(const std::string& name, std::string& v) override { add(name, v); }

 private:
  template <class T>
  void add(const std::string& name, T& v) {
    if (adds_) saver_(name, v);
  }
  Saver saver_;
  Fields& fields_;
  bool adds_ = false;
};

void Snapshot::complete(const Walk& walk) {
  Completer completer(*this);
  walk(completer);
}

void Snapshot::take(const Walk& walk) {
  Saver saver(*this);
  walk(saver);
}

void Snapshot::restore(const Walk& walk) {
  Loader loader(*this);
  walk(loader);
}

}  // namespace skein::optim
