// All differentiable operations, for models. Each is a function of values and records itself on the thread's
// tape. Images are NHWC, convolution weights OHWI. A floating result has the type of its first argument;
// parameters (weights, biases, gamma, shift) are f32 masters whatever the activations are.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "engine/backend.h"
#include "engine/random.h"
#include "engine/tensor.h"

namespace skein {

// Pointwise, from the table: Tensor relu(x), add(a, b), ... Binary ones broadcast like NumPy.
#define UNARY(name, onnx, f, df) Tensor name(const Tensor& x);
#define BINARY(name, onnx, f, da, db) Tensor name(const Tensor& a, const Tensor& b);
#include "engine/ops/pointwise.def"
#undef UNARY
#undef BINARY

// Reductions over the given axes (negative count from the end; none given: all). `keep` leaves extents of 1.
// Sums are in f32. max passes its gradient to the first maximum. argmax: one axis, i32, not differentiable.
Tensor sum(const Tensor& x, const std::vector<int>& axes = {}, bool keep = false);
Tensor mean(const Tensor& x, const std::vector<int>& axes = {}, bool keep = false);
Tensor max(const Tensor& x, const std::vector<int>& axes = {}, bool keep = false);
Tensor argmax(const Tensor& x, int axis);

// Layout. reshape shares memory; the others copy.
Tensor reshape(const Tensor& x, Shape);                                  // one extent may be -1
Tensor transpose(const Tensor& x, const std::vector<int>& axes);         // y.dim(i) = x.dim(axes[i])
Tensor pad(const Tensor& x, const std::vector<std::array<int, 2>>& by);  // zeros before and after each axis
Tensor concat(const std::vector<Tensor>& parts, int axis);
Tensor cast(const Tensor& x, DType);  // between the floating types
// (u8 / 255 - mean[c]) / std[c] of an image [N,H,W,C], as any floating type; not differentiable.
Tensor normalize_image(const Tensor& u8, const std::vector<float>& mean, const std::vector<float>& std,
                       DType);

// a [m,k], b [k,n] -> [m,n].
Tensor matmul(const Tensor& a, const Tensor& b);
// x [m,k], w [n,k], bias [n] or empty -> x w' + bias [m,n].
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});
// x [N,H,W,C], w [O,R,S,C/groups], bias [O] or empty -> [N,P,Q,O].
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, ConvGeometry = {});

struct Pool {
  int size = 2, stride = 2, padding = 0;
  bool ceil_mode = false;
};
Tensor max_pool2d(const Tensor& x, Pool);
Tensor avg_pool2d(const Tensor& x, Pool);  // padding is not counted
Tensor global_avg_pool(const Tensor& x);   // [N,H,W,C] -> [N,C]

// What a batch norm owns. gamma, shift are leaves; the running statistics are updated while training.
struct NormState {
  Tensor gamma, shift, running_mean, running_var;  // [C] f32
  float momentum = 0.1f, epsilon = 1e-5f;
};
struct NormMode {
  bool training = true;
  bool relu = false;     // y <- max(0, y)
  Tensor residual = {};  // added before the ReLU
};
Tensor batch_norm(const Tensor& x, const NormState&, const NormMode&);
// batch_norm(conv2d(x, w), ...) as one entry of the tape. Residual blocks are made of it, and most of the
// fused kernels are behind it.
Tensor conv_bn(const Tensor& x, const Tensor& w, ConvGeometry, const NormState&, const NormMode&);

// One convolution of a chain, and its norm.
struct ConvBnLink {
  Tensor w;
  ConvGeometry geometry;
  NormState norm;
};
// conv_bn of each link in turn, with a ReLU after each; after the last one only if `relu`. `residual`
// returns what the last link adds before its ReLU; it is called when all convolutions but the last are
// done. On CUDA the second of two convolutions may compute the norm between them: its image is then
// neither written nor kept.
Tensor conv_bn_chain(const Tensor& x, const std::vector<ConvBnLink>&, bool training, bool relu = true,
                     const std::function<Tensor()>& residual = {});

// Keeps each element with probability 1 - p and scales it by 1 / (1 - p); the mask is a function of `draw`.
Tensor dropout(const Tensor& x, float p, const Draw& draw);

Tensor log_softmax(const Tensor& x);  // over the last axis
// Mean over the rows with label >= 0 of -sum_c q_c log softmax(logits)_c, q = (1-s) one-hot +
// s/classes. labels i32 [m]; a negative label marks a row that does not count (an unreadable image).
// [1], f32. All rows unmarked: 0.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, float smoothing = 0);
// f32 [2]: how many rows with label >= 0 have their label among the k largest logits, and how many such rows
// there are. Equal logits count against the label (rank = logits greater, plus equal ones of lower index).
Tensor top_k_hits(const Tensor& logits, const Tensor& labels, int k);

}  // namespace skein
