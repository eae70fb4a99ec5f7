// cuDNN's execution plans for one convolution: asked for by shape, found by its heuristics.
#pragma once
#include <compare>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/choice_file.h"
#include "engine/cuda/cudnn_library.h"

namespace skein::cuda {

enum class ConvPass { kForward, kData, kWeights };

// Everything a plan depends on; also the key of the cache.
struct ConvProblem {
  ConvPass pass;
  DType images, weights;        // the types of x and y, and of w
  int64_t n, h, w, c, o, r, s;  // x [n,h,w,c], weights [o,r,s,c/groups]
  int stride, padding, dilation, groups;
  bool accumulate;  // result <- result + ..., else it is overwritten
  bool tf32, deterministic;
  int64_t alignment;  // of all three pointers, in bytes, at most 16
  auto operator<=>(const ConvProblem&) const = default;
  int64_t p() const { return (h + 2 * padding - dilation * (r - 1) - 1) / stride + 1; }
  int64_t q() const { return (w + 2 * padding - dilation * (s - 1) - 1) / stride + 1; }
};
std::ostream& operator<<(std::ostream&, const ConvProblem&);

// The names of the three tensors in an execution.
inline constexpr int64_t kImageId = 1, kWeightsId = 2, kResultId = 3;

struct ConvPlan {
  Descriptor plan;
  int64_t workspace = 0;  // bytes
  std::string name;       // cuDNN's, with its notes: for logs and tables
  std::string choice;     // what plan_of makes the same plan from: "38 2=1 7=0", engine and knobs
};

// Up to `at_most` plans, best first by cuDNN's heuristics; none if it has none that satisfies tf32 and
// deterministic. Building one may compile a kernel (up to a second).
std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem&, size_t at_most = 1);

// The plan of that choice, without asking the heuristics; none if it is no choice, or one that cuDNN or the
// problem does not allow.
std::optional<ConvPlan> plan_of(const Descriptor& device, const ConvProblem&, const std::string& choice);

// How often the heuristics were asked, by this process so far.
int64_t heuristics_asked();

// The plans of one device: each found once a process, and its choice kept in a file for later ones, by
// cuDNN's version, what the device is, and the problem (in which numerics are a part). Measured choices are
// kept apart from cuDNN's own, so that a run without measuring does not depend on what others measured.
// Thread-safe.
class PlanCache {
 public:
  explicit PlanCache(Descriptor device, const std::string& directory = cache_directory());
  // `fastest`, if given, picks the place of one of several plans, best first by heuristics. Throws Error
  // where cuDNN has no way. The reference is good as long as the cache.
  using Fastest = std::function<size_t(const std::vector<ConvPlan>&)>;
  const ConvPlan& find(const ConvProblem&, const Fastest& fastest = {});

 private:
  ConvPlan make(const ConvProblem&, const Fastest&);
  const Descriptor device_;
  ChoiceFile choices_;
  std::mutex mutex_;
  std::map<ConvProblem, ConvPlan> plans_;
};

}  // namespace skein::cuda
