// Convolution on cuDNN: its best plan for the shape, by its heuristics or by measurement, kept for later runs
// too.
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>

#include "engine/cuda/conv_plan.h"
#include "engine/cuda/handles.h"
#include "engine/cuda/pointwise.h"
#include "engine/numerics.h"
#include "engine/ops/reduce.h"

namespace skein::cuda {
namespace {

// What a plan works on: images, weights, result or gradient, in the places of a convolution's x, w and y.
struct Operands {
  Tensor x, w, y;
};

void execute(const ConvPlan& plan, const ConvProblem& k, const Operands& t) {
  const Device d = t.x.device();
  const Tensor memory = workspace(plan.workspace, d);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const int64_t ids[] = {kImageId, kWeightsId, kResultId};
  void* data[] = {t.x.raw(), t.w.raw(), t.y.raw()};
  void* scratch = memory ? memory.raw() : nullptr;
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finalize("a set of arguments");
  const cudnnStatus_t status = cudnn().cudnnBackendExecute(cudnn_handle(d), plan.plan.raw(), pack.raw());
  if (status != CUDNN_STATUS_SUCCESS) check(status, text(k, " by ", plan.name).c_str());
}

double seconds_of(const ConvPlan& plan, const ConvProblem& k, const Operands& t) {
  Stream& stream = current_stream(t.x.device());
  const auto timed = [&](int repeats) {
    stream.sync();
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) execute(plan, k, t);
    stream.sync();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  timed(2);
  return timed(5);
}

// The place of the fastest plan, measured on the operands themselves with a result of its own. One that needs
// more memory than there is, or fails, is not chosen.
size_t fastest(const std::vector<ConvPlan>& plans, const ConvProblem& k, Operands t) {
  Tensor& result = k.pass == ConvPass::kForward ? t.y : k.pass == ConvPass::kData ? t.x : t.w;
  result = Tensor::zeros(result.shape(), result.dtype(), result.device());
  size_t best = 0;
  double least = HUGE_VAL;
  for (size_t i = 0; i < plans.size(); ++i) {
    try {
      if (const double s = seconds_of(plans[i], k, t); s < least) least = s, best = i;
    } catch (const Error&) {  // the next may do
    }
  }
  return best;
}

const ConvPlan& plan_for(const ConvProblem& k, const Operands& t) {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, PlanCache>;
  const int index = t.x.device().index;
  PlanCache* cache = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto at = devices.find(index);
    if (at == devices.end()) at = devices.try_emplace(index, device_properties(index)).first;
    cache = &at->second;
  }
  if (!numerics().measure) return cache->find(k);
  return cache->find(k, [&](const std::vector<ConvPlan>& plans) { return fastest(plans, k, t); });
}

void run(const ConvProblem& k, const Operands& t) { execute(plan_for(k, t), k, t); }

ConvProblem problem_of(ConvPass pass, const ConvArgs& c, const Tensor& w) {
  CHECK(c.x.rank() == 4 && w.rank() == 4 && c.y.rank() == 4, c.x.shape(), w.shape(), c.y.shape());
  const ConvGeometry& g = c.geometry;
  CHECK(g.groups > 0 && c.x.dim(3) == w.dim(3) * g.groups && w.dim(0) % g.groups == 0, c.x.shape(),
        w.shape());
  CHECK(c.x.dtype() == c.y.dtype(), c.x.dtype(), c.y.dtype());
  const ConvProblem k{.pass = pass,
                      .images = c.x.dtype(),
                      .weights = w.dtype(),
                      .n = c.x.dim(0),
                      .h = c.x.dim(1),
                      .w = c.x.dim(2),
                      .c = c.x.dim(3),
                      .o = w.dim(0),
                      .r = w.dim(1),
                      .s = w.dim(2),
                      .stride = g.stride,
                      .padding = g.padding,
                      .dilation = g.dilation,
                      .groups = g.groups,
                      .accumulate = c.beta == 1 && pass != ConvPass::kForward,
                      .tf32 = numerics().tf32,
                      .deterministic = numerics().deterministic,
                      .alignment = common_alignment({c.x.raw(), w.raw(), c.y.raw()})};
  CHECK(c.y.shape() == Shape({k.n, k.p(), k.q(), k.o}), "the result of", c.x.shape(), "and", w.shape(),
        "is not", c.y.shape());
  return k;
}

// What cannot be written where it belongs (another type, a factor not 0 or 1) is written beside it first.
bool direct(const Tensor& result, DType computed, float beta) {
  return result.dtype() == computed && (beta == 0 || beta == 1);
}

}  // namespace

void conv2d_forward(const ConvArgs& c) {
  const Tensor w = as_type(c.w, c.x.dtype());
  const ConvProblem k = problem_of(ConvPass::kForward, c, w);
  if (c.y.size() == 0) return;
  run(k, {c.x, w, c.y});
  add_bias(c.y, c.bias, c.relu);
}

void conv2d_backward_data(const ConvArgs& c) {
  if (c.x.size() == 0) return;
  const Tensor w = as_type(c.w, c.y.dtype());
  ConvArgs own = c;
  if (!direct(c.x, c.y.dtype(), c.beta)) own.x = Tensor(c.x.shape(), c.y.dtype(), c.x.device()), own.beta = 0;
  run(problem_of(ConvPass::kData, own, w), {own.x, w, c.y});
  if (own.x.raw() != c.x.raw()) blend(c.x, own.x, c.beta);
}

// cuDNN sums over 16-bit images in f32, but gives the weights' gradient in their type only.
void conv2d_backward_weights(const ConvArgs& c) {
  CHECK(c.y.size() > 0, "a weight gradient over no pixels", c.x.shape());
  ConvArgs own = c;
  if (!direct(c.w, c.x.dtype(), c.beta)) own.w = Tensor(c.w.shape(), c.x.dtype(), c.w.device()), own.beta = 0;
  run(problem_of(ConvPass::kWeights, own, own.w), {c.x, own.w, c.y});
  if (own.w.raw() != c.w.raw()) blend(c.w, own.w, c.beta);
  if (c.bias) sum_to_shape(c.bias, c.y, c.beta);
}

}  // namespace skein::cuda
