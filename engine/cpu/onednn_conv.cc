// Convolutions through oneDNN: activations stay NHWC, weights are reordered to the blocked layout it prefers.
#include <omp.h>

#include <map>

#include "engine/backend.h"
#include "engine/cpu/convert.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/onednn.h"

namespace skein::cpu {

namespace {

enum Pass : int64_t { kForward, kData, kWeights };

// Everything a primitive depends on, including the thread count, because oneDNN divides the work
// when it makes one.
using Key = std::array<int64_t, 16>;

Key key_of(Pass pass, const ConvArgs& c, DType t) {
  const auto& g = c.geometry;
  return {pass,         c.x.dim(0), c.x.dim(1), c.x.dim(2),
          c.x.dim(3),   c.w.dim(0), c.w.dim(1), c.w.dim(2),
          g.stride,     g.padding,  g.dilation, g.groups,
          bool(c.bias), int64_t(t), c.y.dim(1), omp_get_max_threads()};
}

Md image(const Tensor& t, DType type) {
  return dense({t.dim(0), t.dim(3), t.dim(1), t.dim(2)}, type, {0, 2, 3, 1});
}

// OHWI as oneDNN's (group) output, input, height, width.
Dims weight_dims(const ConvArgs& c) {
  const int64_t groups = c.geometry.groups, o = c.w.dim(0), i = c.w.dim(3), r = c.w.dim(1), s = c.w.dim(2);
  return groups == 1 ? Dims{o, i, r, s} : Dims{groups, o / groups, i, r, s};
}
Md plain_weights(const ConvArgs& c) {
  const bool grouped = c.geometry.groups > 1;
  return dense(weight_dims(c), kF32, grouped ? std::vector{0, 1, 3, 4, 2} : std::vector{0, 2, 3, 1});
}

struct Plan {
  dnnl::primitive run, reorder;  // reorder: between our weights and `weights`; empty if they are the same
  Md x, y, weights, scratch;
  std::string name;  // oneDNN's name of the implementation
};

template <class Desc>
void finish(Plan& p, const Desc& d, const Md& plain, bool inward) {
  p.scratch = d.scratchpad_desc();
  p.name = d.impl_info_str();
  if (p.weights == plain) return;
  const Md &from = inward ? plain : p.weights, &to = inward ? p.weights : plain;
  p.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(dnn_engine(), from, dnn_engine(), to));
}

Plan make_plan(Pass pass, const ConvArgs& c, DType t) {
  const auto& g = c.geometry;
  const DType weight_type = pass == kWeights ? kF32 : t;
  ConvDescs d{image(c.x, t),
              Md(weight_dims(c), dnn_type(weight_type), dnnl::memory::format_tag::any),
              c.bias ? dense({c.w.dim(0)}, kF32, {0}) : Md(),
              image(c.y, t),
              {g.stride, g.stride},
              {g.dilation - 1, g.dilation - 1},
              {g.padding, g.padding}};
  Plan p;
  p.x = d.x, p.y = d.y;
  const dnnl::primitive_attr attr = user_scratchpad();
  if (pass == kForward) {
    const ForwardDesc f = conv_forward_desc(d, attr);
    p.run = dnnl::convolution_forward(f);
    p.weights = f.weights_desc();
    finish(p, f, plain_weights(c), true);
  } else if (pass == kData) {
    const DataDesc b = conv_data_desc(d, attr);
    p.run = dnnl::convolution_backward_data(b);
    p.weights = b.weights_desc();
    finish(p, b, plain_weights(c), true);
  } else {
    const WeightsDesc b = conv_weights_desc(d, attr);
    p.run = dnnl::convolution_backward_weights(b);
    p.weights = b.diff_weights_desc();
    finish(p, b, plain_weights(c), false);
  }
  return p;
}

std::map<Key, Plan>& plans_of_thread() {
  thread_local std::map<Key, Plan> plans;
  return plans;
}

const Plan& plan_for(Pass pass, const ConvArgs& c, DType t) {
  std::map<Key, Plan>& plans = plans_of_thread();
  const Key key = key_of(pass, c, t);
  if (const auto it = plans.find(key); it != plans.end()) return it->second;
  try {
    return plans.emplace(key, make_plan(pass, c, t)).first->second;
  } catch (const dnnl::error& e) {
    throw Error(
        text("oneDNN has no convolution for x ", c.x.shape(), " w ", c.w.shape(), ' ', t, ": ", e.what()));
  }
}

// The type a convolution is computed in.
DType compute_type(const ConvArgs& c) { return c.x.dtype() == kBF16 && native_bf16() ? kBF16 : kF32; }
Tensor as(DType t, const Tensor& x) { return t == kF32 ? as_f32(x) : as_bf16(x); }

// Our weights in the plan's order and type.
Tensor packed_weights(const Plan& p, const ConvArgs& c) {
  if (!p.reorder) return c.w;
  const Tensor packed = scratch_bytes(int64_t(p.weights.get_size()));
  execute(p.reorder,
          {{DNNL_ARG_FROM, memory_at(plain_weights(c), c.w.raw())},
           {DNNL_ARG_TO, memory_at(p.weights, packed.raw())}},
          "packing weights");
  return packed;
}

}  // namespace

std::vector<std::string> onednn_choices() {
  std::vector<std::string> all;
  const char* passes[] = {"forward", "data", "weights"};
  for (const auto& [k, plan] : plans_of_thread())
    all.push_back(text(passes[k[0]], ' ', k[2], 'x', k[3], 'x', k[4], " to ", k[5], " by ", k[6], 'x', k[7],
                       " stride ", k[8], " groups ", k[11], ": ", plan.name));
  return all;
}

void onednn_forward(const ConvArgs& c) {
  const DType t = compute_type(c);
  const Plan& p = plan_for(kForward, c, t);
  const Tensor x = as(t, c.x), w = packed_weights(p, c), pad = scratch_bytes(int64_t(p.scratch.get_size()));
  const bool direct = c.y.dtype() == t;
  const Tensor y = direct ? c.y : scratch_f32(c.y.size());
  Arguments arguments{{DNNL_ARG_SRC, memory_at(p.x, x.raw())},
                      {DNNL_ARG_WEIGHTS, memory_at(p.weights, w.raw())},
                      {DNNL_ARG_DST, memory_at(p.y, y.raw())},
                      {DNNL_ARG_SCRATCHPAD, memory_at(p.scratch, pad.raw())}};
  if (c.bias) arguments.insert({DNNL_ARG_BIAS, memory_at(dense({c.bias.size()}, kF32, {0}), c.bias.raw())});
  execute(p.run, arguments, "conv2d_forward");
  if (!direct) narrow(c.y, y.data<float>());
  if (c.relu) relu(c.y);  // oneDNN's would make zeros of NaNs, and hide that a model has diverged
}

void onednn_backward_data(const ConvArgs& c) {
  const DType t = compute_type(c);
  const Plan& p = plan_for(kData, c, t);
  const Tensor y = as(t, c.y), w = packed_weights(p, c), pad = scratch_bytes(int64_t(p.scratch.get_size()));
  const bool direct = c.x.dtype() == t && c.beta == 0;
  const Tensor x = direct ? c.x : Tensor(c.x.shape(), t);
  execute(p.run,
          {{DNNL_ARG_DIFF_DST, memory_at(p.y, y.raw())},
           {DNNL_ARG_WEIGHTS, memory_at(p.weights, w.raw())},
           {DNNL_ARG_DIFF_SRC, memory_at(p.x, x.raw())},
           {DNNL_ARG_SCRATCHPAD, memory_at(p.scratch, pad.raw())}},
          "conv2d_backward_data");
  if (c.beta != 0 && c.x.dtype() == t) return add_scaled(c.x, x, c.beta);
  if (!direct) blend(c.x, as_f32(x).data<float>(), c.beta);
}

void onednn_backward_weights(const ConvArgs& c) {
  const DType t = compute_type(c);
  const Plan& p = plan_for(kWeights, c, t);
  const Tensor x = as(t, c.x), y = as(t, c.y), pad = scratch_bytes(int64_t(p.scratch.get_size()));
  const Tensor dw = p.reorder || c.beta != 0 ? scratch_bytes(int64_t(p.weights.get_size())) : c.w;
  execute(p.run,
          {{DNNL_ARG_SRC, memory_at(p.x, x.raw())},
           {DNNL_ARG_DIFF_DST, memory_at(p.y, y.raw())},
           {DNNL_ARG_DIFF_WEIGHTS, memory_at(p.weights, dw.raw())},
           {DNNL_ARG_SCRATCHPAD, memory_at(p.scratch, pad.raw())}},
          "conv2d_backward_weights");
  Tensor plain = dw;
  if (p.reorder) {
    plain = c.beta == 0 ? c.w : scratch_bytes(c.w.bytes());
    execute(p.reorder,
            {{DNNL_ARG_FROM, memory_at(p.weights, dw.raw())},
             {DNNL_ARG_TO, memory_at(plain_weights(c), plain.raw())}},
            "unpacking weight gradients");
  }
  if (c.beta != 0) blend(c.w, static_cast<const float*>(plain.raw()), c.beta);
}

}  // namespace skein::cpu
