// An Outline lists the operations of a forward pass by name, with their settings: what an exporter makes a
// graph of.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/tensor.h"

namespace skein {

class Outline {
 public:
  struct Step {
    std::string op;          // the function's name in ops.h; empty: an op that does not describe itself
    std::vector<Tensor> in;  // in the order of its arguments; an absent one is empty
    Tensor out;
    std::map<std::string, std::vector<double>> settings = {};  // "stride": {2}
  };

  Outline();  // becomes the calling thread's current outline, until destroyed; outlines nest
  ~Outline();
  Outline(const Outline&) = delete;
  static Outline* current();  // null: nothing is listed

  // Ops call add() before record(), which takes a result that is not listed yet for an undescribed op's.
  void add(Step);
  void add_undescribed(const Tensor* first, const Tensor* last, const Tensor& out);

  const std::vector<Step>& steps() const { return steps_; }
  // The step whose result `t` is; null for leaves: inputs, parameters, constants.
  const Step* source(const Tensor& t) const;

 private:
  std::vector<Step> steps_;
  std::unordered_map<uint64_t, size_t> by_result_;  // id of the value -> step
  Outline* outer_;
};

}  // namespace skein
