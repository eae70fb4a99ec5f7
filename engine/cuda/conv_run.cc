// Convolutions executed: the plan found or measured, and fused or apart as was chosen for the shape.
#include "engine/cuda/conv_run.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>

#include "engine/cuda/conv_worth.h"
#include "engine/cuda/handles.h"
#include "engine/memory.h"
#include "engine/memory_pool.h"
#include "engine/numerics.h"

namespace skein::cuda {
namespace {

constexpr size_t kMeasuredFused = 3;  // a second of compilation each, and engines differ less

void execute(const ConvPlan& plan, const ConvProblem& k, const Operands& operands) {
  const Device d = operands.front().tensor.device();
  const Tensor memory = workspace(plan.workspace, d);
  std::vector<int64_t> ids;
  std::vector<void*> data;
  for (const Operand& o : operands) ids.push_back(o.id), data.push_back(o.tensor.raw());
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  void* scratch = memory ? memory.raw() : nullptr;
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, int64_t(data.size()), data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finalize("a set of arguments");
  const cudnnStatus_t status = cudnn().cudnnBackendExecute(cudnn_handle(d), plan.plan.raw(), pack.raw());
  if (status != CUDNN_STATUS_SUCCESS) check(status, text(k, " by ", plan.name).c_str());
}

// The fastest of the plans, measured on the operands themselves, if it takes less than `least` seconds. One
// that needs more memory than there is, or fails, is not chosen.
std::optional<size_t> fastest(const std::vector<ConvPlan>& plans, const ConvProblem& k, const Operands& t,
                              double least) {
  std::optional<size_t> best;
  for (size_t i = 0; i < plans.size(); ++i) {
    try {
      const double s = seconds_of(t.front().tensor.device(), [&] { execute(plans[i], k, t); });
      if (s < least) least = s, best = i;
    } catch (const Error&) {  // the next may do
    }
  }
  return best;
}

// The operands with a result of its own: one that is added to must not be added to while measuring.
Operands with_own_result(const ConvProblem& k, Operands t) {
  const int64_t id = k.pass == ConvPass::kForward ? kResultId
                     : k.pass == ConvPass::kData  ? kImageId
                                                  : kWeightsId;
  for (Operand& o : t)
    if (o.id == id) o.tensor = Tensor::zeros(o.tensor.shape(), o.tensor.dtype(), o.tensor.device());
  return t;
}

PlanCache& cache_of(Device d) {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, PlanCache>;
  const std::lock_guard lock(mutex);
  auto at = devices.find(d.index);
  if (at == devices.end()) at = devices.try_emplace(d.index, device_properties(d.index)).first;
  return at->second;
}

std::atomic<int64_t> counts[3][2 * kNormGradient];  // of the passes, by their flags

}  // namespace

double seconds_of(Device d, const std::function<void()>& work) {
  const MemoryPool::Use none(nullptr);  // a recording would keep every candidate's workspace
  Stream& stream = current_stream(d);
  const auto timed = [&](int repeats) {
    stream.sync();
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) work();
    stream.sync();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  timed(2);
  return timed(5);
}

int64_t fused_runs(ConvPass pass, unsigned what) { return counts[int(pass)][what]; }

void run(const ConvProblem& k, const Operands& t) {
  PlanCache& cache = cache_of(t.front().tensor.device());
  if (!numerics().measure) return execute(cache.find(k), k, t);
  const auto pick = [&](const std::vector<ConvPlan>& plans) -> size_t {
    const MemoryPool::Use none(nullptr);
    try {
      return fastest(plans, k, k.accumulate ? with_own_result(k, t) : t, HUGE_VAL).value_or(0);
    } catch (const OutOfMemory&) {  // what would run must not fail for being measured
      return 0;
    }
  };
  execute(cache.find(k, pick), k, t);
}

bool run_fused(const ConvProblem& k, const Operands& t, const std::function<void()>& apart,
               const std::function<double()>& later) {
  if (size_of(k.images) != 2) return false;  // no engine to gain by
  const Device d = t.front().tensor.device();
  const bool measure = numerics().measure;
  const Worth worth = measure ? Worth::kEvenIfCompiled : worth_fusing(k);
  if (worth == Worth::kNo) return false;
  const PlanWish wish{.at_most = measure ? kMeasuredFused : 1, .compiled = worth == Worth::kEvenIfCompiled};
  const auto pick = [&](const std::vector<ConvPlan>& plans) -> std::optional<size_t> {
    if (measure) return fastest(plans, k, t, seconds_of(d, apart) - (later ? later() : 0));
    try {
      execute(plans[0], k, t);
      return 0;
    } catch (const Error&) {  // there is another way
      return {};
    }
  };
  const ConvPlan* plan = cache_of(d).choose(k, wish, measure, pick);
  if (!plan) return false;
  execute(*plan, k, t);
  ++counts[int(k.pass)][k.fused];
  return true;
}

}  // namespace skein::cuda
