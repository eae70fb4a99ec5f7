// cuDNN's execution plans for one convolution, found by its heuristics for the shape.
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
  std::string name;       // cuDNN's name and notes, for logs and tables
  std::string choice;     // plan_of() makes the same plan from it: "38 2=1 7=0", engine and knobs
  bool compiled = false;  // its kernel was compiled when the plan was made
};

struct PlanWish {
  size_t at_most = 1;
  bool compiled = true;  // allow kernels compiled at run time: up to a second each, in every process
  // Allows kernels that cannot be loaded without a driver, to inspect plans, not to run them.
  bool unloaded = false;
};
// Plans, best first by cuDNN's heuristics; empty if none satisfies tf32 and deterministic.
std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem&, const PlanWish& = {});

// The plan of this choice, without asking the heuristics; nothing if the choice is malformed, or cuDNN or the
// problem does not allow it.
std::optional<ConvPlan> plan_of(const Descriptor& device, const ConvProblem&, const std::string& choice);

// The plans of one device. Each is found once per process, and its choice is kept in a file for
// later processes, by cuDNN's version, the kind of GPU, and the problem (which includes numerics).
// Measured choices are kept apart from cuDNN's own, so that a run without measuring does not depend
// on what others measured. Thread-safe.
class PlanCache {
 public:
  explicit PlanCache(Descriptor device, const std::string& directory = cache_directory());
  // `fastest`, if given, returns the index of one of several plans, which are ordered best first by
  // heuristics. Throws Error if cuDNN has no plan. The reference is valid for the lifetime of the cache.
  using Fastest = std::function<size_t(const std::vector<ConvPlan>&)>;
  const ConvPlan& find(const ConvProblem&, const Fastest& fastest = {});
  // For a problem that can be computed without it, too: `pick` returns the index of one of the plans that
  // satisfy the wish, or nothing to prefer the alternative, which is remembered as well. Returns null in that
  // case and if cuDNN has no plan. `measured` says under which of the two kinds of choices to keep it. `pick`
  // may use the cache.
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
