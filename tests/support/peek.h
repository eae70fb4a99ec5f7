// Peek: the fields that an object visits, by name, for tests that look at an algorithm's state.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/archive.h"

namespace skein {

class Peek final : public Archive {
 public:
  template <class T>
  explicit Peek(T& visited) {
    visited.visit(*this);
  }
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& v) override {
    vectors[name] = {v.data<float>(), v.data<float>() + v.size()};
  }
  void operator()(const std::string& name, int64_t& v) override { numbers[name] = double(v); }
  void operator()(const std::string& name, double& v) override { numbers[name] = v; }
  void operator()(const std::string&, std::string&) override {}

  std::map<std::string, std::vector<float>> vectors;
  std::map<std::string, double> numbers;
};

}  // namespace skein
