// An Outline lists the operations of a forward pass by name, with their settings. An exporter makes
// its graph from it.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/tensor.h"

namespace skein {

using Settings = std::map<std::string, std::vector<double>>;  // "stride": {2}

class Outline {
 public:
  struct Step {
    std::string op;          // the function's name in ops.h
    std::vector<Tensor> in;  // in the order of its arguments; an absent one is empty
    Tensor out;
    Settings settings;
  };

  Outline();  // becomes the calling thread's current outline, until destroyed; outlines nest
  ~Outline();
  Outline(const Outline&) = delete;
  static Outline* current();  // null: nothing is listed

  void add(Step);  // called by record() (tape.h)
  const std::vector<Step>& steps() const { return steps_; }
  // The step whose result `t` is; null for leaves: inputs, parameters, constants.
  const Step* source(const Tensor& t) const;

 private:
  std::vector<Step> steps_;
  std::unordered_map<uint64_t, size_t> by_result_;  // id of the value -> step
  Outline* outer_;
};

}  // namespace skein
