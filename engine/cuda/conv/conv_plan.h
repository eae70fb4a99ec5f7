// cuDNN's execution plans for one convolution: asked for by shape, found by its heuristics.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/conv/conv_graph.h"
#include "engine/words/choice_file.h"
#include "engine/words/file.h"

namespace skein::cuda {

inline constexpr size_t kMeasured = 8;  // how many plans are measured

struct ConvPlan {
  Descriptor plan;
  int64_t workspace = 0;  // bytes
  std::string name;       // cuDNN's, with its notes: for logs and tables
  std::string choice;     // what plan_of makes the same plan from: "38 2=1 7=0", engine and knobs
  bool compiled = false;  // its kernel was compiled when the plan was made
};

struct PlanWish {
  size_t at_most = 1;
  bool compiled = true;   // also kernels compiled at run time: up to a second each, in every process
  bool unloaded = false;  // also where that kernel cannot be loaded for want of a driver: to ask, not to run
};
// Plans, best first by cuDNN's heuristics; none if it has none that satisfies tf32 and deterministic.
std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem&, const PlanWish& = {});

// The plan of that choice, without asking the heuristics; none if it is no choice, or one that cuDNN or the
// problem does not allow.
std::optional<ConvPlan> plan_of(const Descriptor& device, const ConvProblem&, const std::string& choice);

// How often the heuristics were asked, by this process so far.
int64_t heuristics_asked();

// The plans of one device: each found once a process, and its choice kept in a file for later
// ones, by cuDNN's version, the kind of GPU, and the problem (in which numerics are a part).
// Measured choices are kept apart from cuDNN's own, so that a run without measuring does not
// depend on what others measured. Thread-safe.
class PlanCache {
 public:
  explicit PlanCache(Descriptor device, const std::string& directory = cache_directory());
  // `fastest`, if given, picks the place of one of several plans, best first by heuristics. Throws Error
  // where cuDNN has no way. The reference is good as long as the cache.
  using Fastest = std::function<size_t(const std::vector<ConvPlan>&)>;
  const ConvPlan& find(const ConvProblem&, const Fastest& fastest = {});
  // For a way beside another: `pick` names one of the wished plans or, by naming none, prefers the other,
  // which is remembered too. Null then, and where cuDNN has no plan. `measured` says which choices to keep
  // apart. The pick may ask the cache.
  using Pick = std::function<std::optional<size_t>(const std::vector<ConvPlan>&)>;
  const ConvPlan* choose(const ConvProblem&, const PlanWish&, bool measured, const Pick&);

 private:
  std::optional<ConvPlan> make(const ConvProblem&, const PlanWish&, bool measured, const Pick&);
  const Descriptor device_;
  ChoiceFile choices_;
  std::recursive_mutex mutex_;
  std::map<ConvProblem, std::optional<ConvPlan>> plans_;
};

}  // namespace skein::cuda
