// Executes convolutions: with the plan found or measured, and fused or unfused as chosen for the shape.
#include "engine/cuda/conv/conv_run.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "engine/cuda/conv/conv_worth.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/handles.h"
#include "engine/cuda/runtime.h"
#include "engine/device/memory.h"
#include "engine/device/memory_pool.h"
#include "engine/numerics.h"

namespace skein::cuda {
namespace {

constexpr size_t kMeasuredFused = 3;  // each costs a second of compilation, and engines differ less

void execute(const ConvPlan& plan, const ConvProblem& k, const Operands& operands) {
  const Device d = operands.front().tensor.device();
  const Tensor memory = workspace(plan.workspace, d);
  std::vector<int64_t> ids;
  std::vector<void*> data;
  for (const Operand& o : operands) ids.push_back(o.id), data.push_back(o.tensor.raw());
  const Descriptor& pack = arguments(ids, data, memory ? memory.raw() : nullptr);
  const cudnnStatus_t status = cudnn().cudnnBackendExecute(cudnn_handle(d), plan.plan.raw(), pack.raw());
  if (status != CUDNN_STATUS_SUCCESS) check(status, text(k, " by ", plan.name).c_str());
}

// The fastest of the plans, measured on the operands themselves, if it takes less than `least` seconds. A
// plan that fails, or needs more memory than there is, is not chosen.
std::optional<size_t> fastest(const std::vector<ConvPlan>& plans, const ConvProblem& k, const Operands& t,
                              double least) {
  std::optional<size_t> best;
  for (size_t i = 0; i < plans.size(); ++i) {
    try {
      const double s = seconds_of(t.front().tensor.device(), [&] { execute(plans[i], k, t); });
      if (s < least) least = s, best = i;
    } catch (const Error&) {  // the next plan may work
    }
  }
  return best;
}

// The operands with a separate result, because measuring must not add to an accumulated one.
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

std::atomic<int64_t> counts[3][2 * kNormGradient];  // counts passes by their flags

}  // namespace

namespace {

// Clearing it between runs evicts what the last run left in the cache, because in a step the operands have
// left the cache before they are read again. Empty if there is no such cache, or no room.
Tensor filler(Device d) {
  const int64_t bytes = 2 * cache_bytes(d.index);
  if (bytes == 0) return {};
  try {
    return Tensor({bytes}, kU8, d);
  } catch (const OutOfMemory&) { return {}; }
}

// The work as a graph; nothing if it cannot be captured.
std::optional<Graph> captured(Stream& s, const std::function<void()>& work) {
  try {
    begin_capture(s.handle());
    try {
      work();
    } catch (...) {
      abandon_capture(s.handle());
      return {};
    }
    return end_capture(s.handle());
  } catch (const Error&) { return {}; }
}

}  // namespace

// A host clock around launches would measure launching, and unfused work has more launches. Replays of a
// graph have none between their nodes. The clearing is measured alone and subtracted.
double seconds_of(Device d, const std::function<void()>& work) {
  const MemoryPool::Use none(nullptr);  // a recording would keep every candidate's workspace
  constexpr int kRepeats = 5, kRounds = 2;
  Stream& stream = current_stream(d);
  work();  // chooses plans and loads kernels
  const Tensor cleared = filler(d);
  const auto repeated = [&](const std::function<void()>& each) {
    for (int i = 0; i < kRepeats; ++i) {
      if (cleared) clear(cleared.raw(), cleared.bytes(), stream.handle());
      each();
    }
  };
  const auto whole = captured(stream, [&] { repeated(work); }),
             rest = captured(stream, [&] { repeated([] {}); });
  double best = HUGE_VAL;
  if (whole && rest) {
    for (int round = 0; round < kRounds; ++round)
      best = std::min(best, seconds_of(*whole, stream.handle()) - seconds_of(*rest, stream.handle()));
    return best / kRepeats;
  }
  stream.sync();
  const auto from = std::chrono::steady_clock::now();
  for (int i = 0; i < kRepeats; ++i) work();
  stream.sync();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count() / kRepeats;
}

const Descriptor& arguments(const std::vector<int64_t>& ids, const std::vector<void*>& addresses,
                            void* scratch) {
  using Key = std::tuple<std::vector<int64_t>, std::vector<void*>, void*>;
  constexpr size_t kMost = 4096;  // several times the convolutions of a step
  static thread_local std::map<Key, Descriptor> known;
  Key key(ids, addresses, scratch);
  const auto at = known.find(key);
  if (at != known.end()) return at->second;
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, int64_t(addresses.size()),
           addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
  pack.finalize("a set of arguments");
  if (known.size() >= kMost) known.clear();
  return known.emplace(std::move(key), std::move(pack)).first->second;
}

int64_t fused_runs(ConvPass pass, unsigned what) { return counts[int(pass)][what]; }

void run(const ConvProblem& k, const Operands& t) {
  PlanCache& cache = cache_of(t.front().tensor.device());
  if (!numerics().measure) return execute(cache.find(k), k, t);
  const auto pick = [&](const std::vector<ConvPlan>& plans) -> size_t {
    const MemoryPool::Use none(nullptr);
    try {
      return fastest(plans, k, k.accumulate ? with_own_result(k, t) : t, HUGE_VAL).value_or(0);
    } catch (const OutOfMemory&) {  // measuring must not make the run fail
      return 0;
    }
  };
  execute(cache.find(k, pick), k, t);
}

bool run_fused(const ConvProblem& k, const Operands& t, const std::function<void()>& apart,
               const std::function<double()>& later) {
  if (size_of(k.images) != 2) return false;  // there is no fused engine for it
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
    } catch (const Error&) {  // the unfused way remains
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
