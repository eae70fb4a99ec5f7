// Executes cuDNN's operation graphs on the host from their descriptors.
#include <cstring>
#include <string>

#include "engine/backend.h"
#include "tests/emulated/cudnn_records.h"
#include "tests/emulated/gpu.h"

namespace skein::emulated {
namespace {

// A tensor's descriptor, in our order of axes: N H W C for images, O R S I for weights.
struct Layout {
  int64_t id;
  DType type;
  Shape shape;
  bool is_virtual;
};

DType type_of(cudnnDataType_t t) {
  switch (t) {
    case CUDNN_DATA_FLOAT:
      return kF32;
    case CUDNN_DATA_BFLOAT16:
      return kBF16;
    case CUDNN_DATA_HALF:
      return kF16;
    default:
      fault(("cuDNN's type " + std::to_string(int(t)) + " is not one of ours").c_str());
  }
}

Layout layout_of(const Record& t) {
  const auto d = t.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
             by = t.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (d.size() != 4 || by.size() != 4) fault("a tensor with four axes is expected");
  const std::vector<int64_t> dense{d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
  for (size_t i = 0; i < 4; ++i)
    if (d[i] > 1 && by[i] != dense[i]) fault("a tensor is not dense with its channels innermost");
  return {t.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
          type_of(t.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
          {d[0], d[2], d[3], d[1]},
          t.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && t.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)};
}

// The tensors of one run: the device's memory, and virtual tensors between operations.
class Values {
 public:
  explicit Values(const std::map<int64_t, void*>& data) : data_(data) {}
  Tensor read(const Record& t) {
    const Layout l = layout_of(t);
    if (l.is_virtual) {
      const auto at = between_.find(l.id);
      if (at == between_.end()) fault("an operation comes before the one whose result it takes");
      return at->second;
    }
    const Tensor host(l.shape, l.type);
    memcpy(host.raw(), data_.at(l.id), size_t(host.bytes()));
    return host;
  }
  void write(const Record& t, const Tensor& host) {
    const Layout l = layout_of(t);
    if (host.shape() != l.shape || host.dtype() != l.type)
      fault("a result has another shape or type than its tensor");
    if (l.is_virtual)
      between_[l.id] = host;
    else
      memcpy(data_.at(l.id), host.raw(), size_t(host.bytes()));
  }

 private:
  const std::map<int64_t, void*>& data_;
  std::map<int64_t, Tensor> between_;
};

ConvGeometry geometry_of(const Record& c, const Tensor& x, const Tensor& w) {
  const auto stride = c.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
             before = c.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
             after = c.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
             dilation = c.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (c.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    fault("a convolution that turns its weights around");
  if (stride[0] != stride[1] || before != after || before[0] != before[1] || dilation[0] != dilation[1])
    fault("a convolution that differs by axis");
  return {int(stride[0]), int(before[0]), int(dilation[0]), int(x.dim(3) / w.dim(3))};
}

// The tensor in f32: passes compute in f32, and results are rounded to the tensor's type once, at the end.
Tensor widened(const Tensor& t) {
  if (t.dtype() == kF32) return t;
  const Tensor wide(t.shape());
  visit_float(t.dtype(), [&](auto zero) {
    for (int64_t i = 0; i < t.size(); ++i) wide.data<float>()[i] = float(t.data<decltype(zero)>()[i]);
  });
  return wide;
}
Tensor rounded(const Tensor& t, DType type) {
  if (type == t.dtype()) return t;
  const Tensor narrow(t.shape(), type);
  visit_float(type, [&](auto zero) {
    for (int64_t i = 0; i < t.size(); ++i)
      narrow.data<decltype(zero)>()[i] = decltype(zero)(t.data<float>()[i]);
  });
  return narrow;
}

struct Names {
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta, result;
};

// One convolution, whichever of its three tensors is the result.
void convolve(const Record& op, const Names& at, Values& values) {
  const Record &rx = op.child(at.x), &rw = op.child(at.w), &ry = op.child(at.y);
  const Record& result = op.child(at.result);
  const float alpha = op.one<float>(at.alpha), beta = op.one<float>(at.beta);
  if (alpha != 1) fault("a convolution with a factor");
  // A result is read if it is added to; else its memory may hold anything.
  const auto given = [&](const Record& t) {
    return &t == &result && beta == 0 ? Tensor::zeros(layout_of(t).shape) : widened(values.read(t));
  };
  const Tensor x = given(rx), w = given(rw), y = given(ry);
  const ConvArgs args{.x = x,
                      .w = w,
                      .bias = {},
                      .y = y,
                      .geometry = geometry_of(op.child(at.convolution), x, w),
                      .beta = beta};
  if (&result == &ry && beta != 0) fault("a convolution that adds to its result");
  if (&result == &ry) conv2d_forward(kCpu, args);
  if (&result == &rx) conv2d_backward_data(kCpu, args);
  if (&result == &rw) conv2d_backward_weights(kCpu, args);
  const Tensor& made = &result == &ry ? y : &result == &rx ? x : w;
  values.write(result, rounded(made, layout_of(result).type));
}

float combined(cudnnPointwiseMode_t mode, float x, float b) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_RELU_FWD:  // b is not read
      return x < 0 ? 0 : x;
    case CUDNN_POINTWISE_RELU_BWD:  // x is the gradient
      return b > 0 ? x : 0;
    default:
      fault(("a pointwise operation that nobody here computes: " + std::to_string(int(mode))).c_str());
  }
}

// A pointwise operation of one or two tensors; the second may have one value per channel.
void pointwise(const Record& op, Values& values) {
  const auto mode = op.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                        .one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  const bool back = mode == CUDNN_POINTWISE_RELU_BWD;
  const Record& first =
      op.child(back ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const auto second = back ? CUDNN_ATTR_OPERATION_POINTWISE_XDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC;
  const Record& result =
      op.child(back ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const Tensor x = widened(values.read(first)), y(x.shape());
  const Tensor b = op.has(second) ? widened(values.read(op.child(second))) : x;
  if (b.size() != x.size() && b.size() != x.dim(-1))
    fault("an operation on tensors that do not fit each other");
  for (int64_t i = 0; i < x.size(); ++i)
    y.data<float>()[i] = combined(mode, x.data<float>()[i], b.data<float>()[i % b.size()]);
  values.write(result, rounded(y, layout_of(result).type));
}

// Sums over all axes but the channels, in f32, of the stored values.
void sum_channels(const Record& op, Values& values) {
  if (op.one<cudnnGenStatsMode_t>(CUDNN_ATTR_OPERATION_GENSTATS_MODE) != CUDNN_GENSTATS_SUM_SQSUM)
    fault("statistics other than sums and sums of squares");
  const Tensor x = widened(values.read(op.child(CUDNN_ATTR_OPERATION_GENSTATS_XDESC)));
  const int64_t channels = x.dim(-1);
  const Tensor sum = Tensor::zeros({1, 1, 1, channels}), squares = Tensor::zeros({1, 1, 1, channels});
  for (int64_t i = 0; i < x.size(); ++i) {
    const float v = x.data<float>()[i];
    sum.data<float>()[i % channels] += v, squares.data<float>()[i % channels] += v * v;
  }
  values.write(op.child(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC), sum);
  values.write(op.child(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC), squares);
}

// The gradients of a batch norm's parameters, and each channel's coefficients in dx = p dy + q x + r.
void sum_gradient(const Record& op, Values& values) {
  const auto read = [&](cudnnBackendAttributeName_t name) { return widened(values.read(op.child(name))); };
  const Tensor x = read(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC),
               dy = read(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC),
               mean = read(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC),
               rstd = read(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC),
               gamma = read(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC);
  const int64_t channels = x.dim(-1);
  const Shape s{1, 1, 1, channels};
  const Tensor dgamma = Tensor::zeros(s), dshift = Tensor::zeros(s), p(s), q(s), r(s);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = i % channels;
    const float d = dy.data<float>()[i];
    dshift.data<float>()[c] += d;
    dgamma.data<float>()[c] += d * (x.data<float>()[i] - mean.data<float>()[c]) * rstd.data<float>()[c];
  }
  const float n = float(x.size() / channels);
  for (int64_t c = 0; c < channels; ++c) {
    const float k = gamma.data<float>()[c] * rstd.data<float>()[c];
    const float slope = -k * rstd.data<float>()[c] * dgamma.data<float>()[c] / n;
    p.data<float>()[c] = k, q.data<float>()[c] = slope;
    r.data<float>()[c] = -k * dshift.data<float>()[c] / n - slope * mean.data<float>()[c];
  }
  values.write(op.child(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC), dgamma);
  values.write(op.child(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC), dshift);
  values.write(op.child(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC), p);
  values.write(op.child(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC), q);
  values.write(op.child(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS), r);
}

void run(const Record& op, Values& values) {
  switch (op.type) {
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
      return sum_gradient(op, values);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return pointwise(op, values);
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      return sum_channels(op, values);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return convolve(
          op,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
          values);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return convolve(
          op,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
          values);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return convolve(
          op,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
          values);
    default:
      fault(("an operation of cuDNN's that nobody here computes: " + std::to_string(int(op.type))).c_str());
  }
}

}  // namespace

void obey(const Record& graph, const std::map<int64_t, void*>& data) {
  Values values(data);
  for (const auto& op : graph.children(CUDNN_ATTR_OPERATIONGRAPH_OPS)) run(*op, values);
}

std::map<int64_t, size_t> memory_of(const Record& graph) {
  std::map<int64_t, size_t> bytes;
  for (const auto& op : graph.children(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    for (const auto& [name, attribute] : op->attributes)
      for (const auto& child : attribute.children) {
        if (child->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
        const Layout l = layout_of(*child);
        if (!l.is_virtual) bytes[l.id] = size_t(l.shape.volume() * skein::size_of(l.type));
      }
  return bytes;
}

}  // namespace skein::emulated
