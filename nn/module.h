// A Module is named parameters, buffers, children and a forward. flatten() lays all parameters in one vector.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/ops.h"
#include "engine/tape.h"

namespace skein::nn {

// How a parameter starts. Values are drawn by initialize() from Philox(seed, kInit, index of the parameter in
// declaration order), so they do not depend on the device or on the order of construction of other models.
struct Init {
  enum Kind : uint8_t { kConstant, kUniform, kNormal } kind = kConstant;
  float a = 0, b = 0;  // constant a; uniform in [a, b); normal with mean a and deviation b
  static Init constant(float v) { return {kConstant, v, 0}; }
  static Init uniform(float bound) { return {kUniform, -bound, bound}; }
  static Init normal(float std) { return {kNormal, 0, std}; }
};

// The layout of the parameter in torchvision's files; ours is OHWI and rows over H W C.
enum class FileLayout : uint8_t {
  kSame,           // vectors, matrices
  kOihw,           // convolution weights: O H W I here, O I H W there
  kLinearFromMap,  // first linear layer after a map: [out, H*W*C] here, [out, C*H*W] there
};

struct Param {
  std::string name;  // torchvision's, dotted: "layer1.0.conv1.weight"
  Tensor value, grad;
  Init init;
  bool decays = true;  // false for biases and norms: no weight decay unless asked for
  FileLayout file = FileLayout::kSame;
  std::array<int64_t, 3> map{};  // kLinearFromMap: H, W, C of the map
};
struct Buffer {
  std::string name;
  Tensor value;  // f32
  float start = 0;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual Tensor forward(const Tensor& x) = 0;
  // Calls f on this module and all below it, depth first, parents before children.
  void each(const std::function<void(Module&)>& f);
  // Training: batch statistics, dropout. Reaches all children.
  void set_training(bool);
  bool training() const { return training_; }
  // Declaration order, depth first: own before children's. Pointers are valid as long as the module.
  std::vector<Param*> params();
  std::vector<Buffer*> buffers();

 protected:
  Param* param(std::string name, Shape, Init, bool decays = true);
  Buffer* buffer(std::string name, Shape, float start);
  // The names in the child get the prefix "name.".
  template <class M, class... A>
  M* child(const std::string& name, A&&... a) {
    auto m = std::make_unique<M>(std::forward<A>(a)...);
    M* raw = m.get();
    adopt(name, std::move(m));
    return raw;
  }
  void adopt(const std::string& name, std::unique_ptr<Module>);

 private:
  bool training_ = true;
  std::vector<std::unique_ptr<Param>> own_;
  std::vector<std::unique_ptr<Buffer>> own_buffers_;
  std::vector<std::unique_ptr<Module>> children_;
};

// As many elements as start at multiples of 256 bytes: the alignment of vector loads and library kernels.
constexpr int64_t padded(int64_t elements) {
  constexpr int64_t kAlign = 256 / sizeof(float);
  return (elements + kAlign - 1) / kAlign * kAlign;
}

// One parameter's (or buffer's) place in the flat vector, in elements.
struct Segment {
  std::string name;
  int64_t offset = 0;
  Shape shape;
  bool decays = true;
  int layer = 0;     // from the input, from 0; the parameters of a residual block are one layer
  size_t param = 0;  // its index in Module::params()
  bool matrix() const { return shape.rank() > 1; }  // else it is a norm's or a bias
};

// Where a model's parameters lie in one vector. Two regions, decaying parameters first (elements
// [0, decayed)), then the others; each in declaration order, each segment padded().
struct Layout {
  std::vector<Segment> segments;
  int64_t decayed = 0, size = 0;
  int64_t count = 0;  // of real parameters, without padding
  int layers = 0;     // the last of them is the head
};

// A model as a distributed algorithm sees it. x: all parameters, g: all gradients, same layout, f32, on one
// device. Padding is zero in x and g and stays zero, because rules and averages map zeros to zeros.
struct Flat : Layout {
  Tensor x = {}, g = {}, buffers = {};
  std::vector<Segment> buffer_segments = {};
};

Layout layout_of(Module& m);

// Moves every parameter and buffer of m into one vector taken from `from` and rebinds the windows; values are
// kept. Parameters need not be initialized yet. x and g may lie in memory shared with other processes.
Flat flatten(Module& m, Allocator& from);

// Draws all parameters from `seed` and resets the buffers. The result is the same before and after flatten().
void initialize(Module& m, uint64_t seed);

// Number of real parameters.
int64_t count_params(Module& m);

}  // namespace skein::nn
