// Archive: one walk over named fields serves saving, loading and printing, so the three cannot drift apart.
#pragma once
#include <string>

#include "engine/tensor.h"

namespace skein {

// A class with state has one `void visit(Archive& a)` that names each field once. Saving reads the fields,
// loading writes them; a tensor is written in place (same shape and type, else BadFile) so windows stay
// bound. Tensors that do not exist yet (lazily made state) must be created before they are visited.
class Archive {
 public:
  virtual ~Archive() = default;
  virtual bool loading() const = 0;
  virtual void operator()(const std::string& name, Tensor&) = 0;
  virtual void operator()(const std::string& name, int64_t&) = 0;
  virtual void operator()(const std::string& name, double&) = 0;
  virtual void operator()(const std::string& name, std::string&) = 0;
};

// The same archive with every name prefixed: Under(ar, "rule.") visits "rule.v".
class Under final : public Archive {
 public:
  Under(Archive& inner, std::string prefix) : inner_(inner), prefix_(std::move(prefix)) {}
  bool loading() const override { return inner_.loading(); }
  void operator()(const std::string& name, Tensor& v) override { inner_(prefix_ + name, v); }
  void operator()(const std::string& name, int64_t& v) override { inner_(prefix_ + name, v); }
  void operator()(const std::string& name, double& v) override { inner_(prefix_ + name, v); }
  void operator()(const std::string& name, std::string& v) override { inner_(prefix_ + name, v); }

 private:
  Archive& inner_;
  std::string prefix_;
};

// The same archive, which skips the fields under this prefix.
class Without final : public Archive {
 public:
  Without(Archive& inner, std::string prefix) : inner_(inner), prefix_(std::move(prefix)) {}
  bool loading() const override { return inner_.loading(); }
  void operator()(const std::string& name, Tensor& v) override { pass(name, v); }
  void operator()(const std::string& name, int64_t& v) override { pass(name, v); }
  void operator()(const std::string& name, double& v) override { pass(name, v); }
  void operator()(const std::string& name, std::string& v) override { pass(name, v); }

 private:
  template <class T>
  void pass(const std::string& name, T& v) {
    if (!name.starts_with(prefix_)) inner_(name, v);
  }
  Archive& inner_;
  std::string prefix_;
};

}  // namespace skein
