// Builds cuDNN's graph of a convolution from its shape: tensors, operations, and the edges between them.
#include "engine/cuda/conv/conv_graph.h"

#include <utility>
#include <vector>

namespace skein::cuda {
namespace {

cudnnDataType_t type_of(DType t) {
  CHECK(is_float(t), "cuDNN gets f32, bf16 or f16, not", t);
  return t == kF32 ? CUDNN_DATA_FLOAT : t == kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

// cuDNN names axes N C H W (weights: O I R S) whatever the layout; the strides put channels innermost.
// A virtual tensor lives inside the graph alone.
Descriptor tensor(int64_t id, DType t, const std::vector<int64_t>& d, int64_t alignment,
                  bool is_virtual = false) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(t));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, d);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]});
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  tensor.finalize("a tensor's descriptor");
  return tensor;
}

Descriptor convolution(const ConvProblem& k) {
  Descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(2));
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {k.dilation, k.dilation});
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {k.stride, k.stride});
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {k.padding, k.padding});
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {k.padding, k.padding});
  c.finalize("a convolution's descriptor");
  return c;
}

// The attribute names of the tensors of one pass.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
Names names(ConvPass pass) {
  if (pass == ConvPass::kForward)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (pass == ConvPass::kData)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// The operations of a problem, in order, and the tensors between them.
class Nodes {
 public:
  explicit Nodes(const ConvProblem& k) : k_(k) {
    if (k.fused & kNormGradient)
      back_through_norm();
    else
      forth();
  }
  Descriptor graph() const {
    std::vector<const Descriptor*> all;
    for (const Descriptor& d : operations_) all.push_back(&d);
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, all);
    graph.finalize("an operation graph");
    return graph;
  }

 private:
  using Extents = std::vector<int64_t>;
  Extents input() const { return {k_.n, k_.c, k_.h, k_.w}; }
  Extents result() const { return {k_.n, k_.o, k_.p(), k_.q()}; }
  Descriptor image(int64_t id, const Extents& e) const { return tensor(id, k_.images, e, k_.alignment); }
  Descriptor vector(int64_t id, int64_t channels, DType t = kF32) const {
    return tensor(id, t, {1, channels, 1, 1}, k_.alignment);
  }
  Descriptor inside(DType t, const Extents& e) { return tensor(next_++, t, e, 16, true); }

  // The convolution or a gradient, with what is fused before and after it.
  void forth() {
    const auto next = [&](unsigned rest) {  // is any step left?
      return k_.fused & rest ? inside(kF32, result()) : image(kResultId, result());
    };
    Descriptor y = next(kBias | kResidual | kRelu);
    convolve(k_.fused & kNormalize ? normalized() : image(kImageId, input()), y);
    if (k_.fused & kBias)
      y = pointwise(CUDNN_POINTWISE_ADD, y, vector(kBiasId, k_.o), next(kResidual | kRelu));
    if (k_.fused & kResidual)
      y = pointwise(CUDNN_POINTWISE_ADD, y, image(kResidualId, result()), next(kRelu));
    if (k_.fused & kRelu) y = pointwise(CUDNN_POINTWISE_RELU_FWD, y, {}, next(0));
    if (k_.fused & kSums) sum(y);
  }
  // Sets x and y; in a gradient one of them is the result.
  void convolve(const Descriptor& x, const Descriptor& y) {
    const Names at = names(k_.pass);
    Descriptor& o = operations_.emplace_back(at.type);
    o.set(at.x, x);
    o.set(at.w, tensor(kWeightsId, k_.weights, {k_.o, k_.c / k_.groups, k_.r, k_.s}, k_.alignment));
    o.set(at.y, y);
    o.set(at.convolution, convolution(k_));
    o.set(at.alpha, 1.f);
    o.set(at.beta, k_.accumulate ? 1.f : 0.f);
    o.finalize("a convolution's operation");
  }
  Descriptor& begin_pointwise(cudnnPointwiseMode_t mode) {
    Descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    what.finalize("a pointwise operation's descriptor");
    Descriptor& o = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    return o;
  }
  // Appends y = mode(x, b) and returns y.
  Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor& b, Descriptor y) {
    Descriptor& o = begin_pointwise(mode);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) o.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    o.finalize("a pointwise operation");
    return y;
  }
  // Each step is in the image's type: forward and weights then ask for the same, and cuDNN has more engines
  // for it than with f32 in between.
  Descriptor normalized() {
    const DType t = k_.images;
    Descriptor x = pointwise(CUDNN_POINTWISE_MUL, image(kImageId, input()), vector(kMapScaleId, k_.c, t),
                             inside(t, input()));
    x = pointwise(CUDNN_POINTWISE_ADD, x, vector(kMapBiasId, k_.c, t), inside(t, input()));
    return pointwise(CUDNN_POINTWISE_RELU_FWD, x, {}, inside(t, input()));
  }
  void back_through_norm() {
    const Descriptor dy = inside(kF32, input()), raw = image(kRawId, input()),
                     masked = image(kImageId, input());
    convolve(dy, image(kResultId, result()));
    const auto step = [&](cudnnPointwiseMode_t mode, const Descriptor& x, int64_t id) {
      return pointwise(mode, x, vector(id, k_.c), inside(kF32, input()));
    };
    Descriptor y = step(CUDNN_POINTWISE_SUB, raw, kMeanId);
    y = step(CUDNN_POINTWISE_MUL, y, kRstdId);
    y = step(CUDNN_POINTWISE_MUL, y, kGammaId);
    y = step(CUDNN_POINTWISE_ADD, y, kShiftId);
    Descriptor& o = begin_pointwise(CUDNN_POINTWISE_RELU_BWD);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, y);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, masked);
    o.finalize("a ReLU's gradient");
    sum_gradient(raw, masked);
  }
  void sum_gradient(const Descriptor& raw, const Descriptor& dy) {
    Descriptor& o = operations_.emplace_back(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT);
    o.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, raw);
    o.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dy);
    const std::pair<cudnnBackendAttributeName_t, TensorId> vectors[] = {
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, kMeanId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, kRstdId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, kGammaId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, kGammaGradientId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, kShiftGradientId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, kLineOfGradientId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, kLineOfRawId},
        {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, kLineConstantId}};
    for (const auto& [name, id] : vectors) o.set(name, vector(id, k_.c));
    o.finalize("the operation of a norm's gradients");
  }
  void sum(const Descriptor& y) {
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    Descriptor& o = operations_.emplace_back(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
    o.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
    o.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y);
    o.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, vector(kSumId, k_.o));
    o.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, vector(kSquaresId, k_.o));
    o.finalize("the operation of a channel's sums");
  }

  const ConvProblem& k_;
  int64_t next_ = kFirstInsideId;
  std::vector<Descriptor> operations_;
};

}  // namespace

std::ostream& operator<<(std::ostream& s, const ConvProblem& k) {
  static constexpr const char* kPasses[] = {"forward", "data gradient", "weight gradient"};
  s << kPasses[int(k.pass)] << ' ' << k.images << '/' << k.weights << " x [" << k.n << ',' << k.h << ','
    << k.w << ',' << k.c << "] w [" << k.o << ',' << k.r << ',' << k.s << ',' << k.c / k.groups << "] stride "
    << k.stride << " padding " << k.padding;
  if (k.dilation != 1) s << " dilation " << k.dilation;
  if (k.groups != 1) s << " groups " << k.groups;
  if (k.fused & kNormalize) s << " after norm and relu";
  if (k.fused & kBias) s << " + bias";
  if (k.fused & kResidual) s << " + residual";
  if (k.fused & kRelu) s << " + relu";
  if (k.fused & kSums) s << " + sums";
  if (k.fused & kNormGradient) s << " + relu's and norm's";
  if (k.accumulate) s << " adding";
  if (k.images == kF32 && k.tf32) s << " TF32";
  if (k.deterministic) s << " deterministic";
  return k.alignment == 16 ? s : s << " aligned to " << k.alignment;
}

Descriptor graph_of(const ConvProblem& k) {
  const unsigned may = k.pass == ConvPass::kForward ? kBias | kResidual | kRelu | kSums | kNormalize
                       : k.pass == ConvPass::kData  ? kNormGradient
                                                    : kNormalize;
  CHECK((k.fused & ~may) == 0 && !(k.fused && k.accumulate), "this is not fused onto", k);
  return Nodes(k).graph();
}

}  // namespace skein::cuda
