// Turns the operations of a forward pass into the nodes of an ONNX graph of operator set 13.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ops.h"
#include "engine/outline.h"
#include "engine/tape.h"
#include "nn/module.h"
#include "onnx.pb.h"

namespace skein::apps {

inline constexpr int64_t kOnnxOperators = 13,
                         kOnnxFormat = 7;  // operator set; version of the file's structure

// Writes nodes and initializers into a graph. Our maps [N,H,W,C] are [N,C,H,W] there; axis 0
// may have any extent.
class OnnxGraph {
 public:
  OnnxGraph(onnx::Graph& to, nn::Module&);
  // Declares `t` (f32, [N,H,W,C]) as the graph's input of this name.
  void input(const Tensor& t, const std::string& name);
  // Adds everything that `t` is computed from, in the order of the outline, and `t` ([N,K]) as the graph's
  // output of this name. Throws Error naming an operation that has no counterpart.
  void output(const Outline&, const Tensor& t, const std::string& name);

 private:
  using Step = Outline::Step;
  struct Value {
    std::string name;
    bool channels_first = false;  // [N,C,H,W] of our [N,H,W,C]
  };
  using Names = std::vector<std::string>;

  onnx::Node& node(const char* type, const Names& in, const std::string& out);
  std::string add(const char* type, const Names& in);  // adds a node and returns its result's new name
  onnx::Node& last() { return *to_.mutable_node(to_.node_size() - 1); }
  std::string constant(const Tensor& f32, const std::string& name = "");
  std::string numbers(const std::vector<int64_t>&);
  std::string leaf(const Tensor&);                // a parameter, a buffer or a constant, in our layout
  std::string convolution_weight(const Tensor&);  // O I H W
  const Value& value(const Tensor&);
  std::string channels_first(const Tensor&);
  std::string plain(const Tensor&);  // in our order of axes
  void set(const Tensor&, const std::string& name, bool channels_first);

  void emit(const Step&);
  void convolution(const Step&, bool norm);
  std::string norm(const Step&, std::string x, size_t first);
  void pool(const Step&, const char* type);
  void reduce(const Step&, const char* type);
  void reshape(const Step&);
  void transpose(const Step&);
  void pad(const Step&);
  bool pointwise(const Step&);

  onnx::Graph& to_;
  std::unordered_map<uint64_t, std::string> names_;  // of parameters and buffers
  std::unordered_map<uint64_t, Value> values_;       // by the id of our tensor
  // The name of a value or weight in the other layout.
  std::map<std::pair<std::string, char>, std::string> other_;
  int64_t batch_ = 0;
  int next_ = 0;
};

}  // namespace skein::apps
