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
      copy_bytes(*kept, v);
    else
      field = v ? v.clone() : Tensor();
  }
  void operator()(const std::string& name, int64_t& v) override { fields_[name] = v; }
  void operator()(const std::string& name, double& v) override { fields_[name] = v; }
  void operator()(const std::string& name, std::string& v) override { fields_[name] = v; }

 private:
  decltype(Snapshot::fields_)& fields_;
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
  decltype(Snapshot::fields_)& fields_;
};

void Snapshot::take(const Walk& walk) {
  Saver saver(*this);
  walk(saver);
}

void Snapshot::restore(const Walk& walk) {
  Loader loader(*this);
  walk(loader);
}

bool Snapshot::operator==(const Snapshot& other) const {
  if (fields_.size() != other.fields_.size()) return false;
  for (auto a = fields_.begin(), b = other.fields_.begin(); a != fields_.end(); ++a, ++b) {
    if (a->first != b->first || a->second.index() != b->second.index()) return false;
    if (const Tensor* t = std::get_if<Tensor>(&a->second)) {
      const Tensor x = t->to(kCpu), y = std::get<Tensor>(b->second).to(kCpu);
      if (!t->device().is_host()) current_stream(t->device()).sync();
      if (x.bytes() != y.bytes() || (x && memcmp(x.raw(), y.raw(), size_t(x.bytes())) != 0)) return false;
    } else if (const double* d = std::get_if<double>(&a->second)) {
      if (memcmp(d, &std::get<double>(b->second), sizeof *d) != 0) return false;
    } else if (const int64_t* i = std::get_if<int64_t>(&a->second)) {
      if (*i != std::get<int64_t>(b->second)) return false;
    } else if (const std::string* s = std::get_if<std::string>(&a->second)) {
      if (*s != std::get<std::string>(b->second)) return false;
    }
  }
  return true;
}

}  // namespace skein::optim
