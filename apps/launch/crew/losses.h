// What a launcher does about lost workers, and the exit statuses by which it tells how they ended.
#pragma once
#include <algorithm>
#include <cstdint>

namespace skein::apps {

// What happens to a job when one of its workers is lost.
enum class Loss : uint8_t {
  kEndsAll,      // the others get time to notice and to save
  kIsSurvived,   // the others continue
  kOfFirstEnds,  // the others continue, unless the first was lost; its end is the job's
  // The others continue, and a fresh worker takes its place (Replacements). Until a first worker has reported
  // that it is a member of the job, the job has not begun, and a loss ends all.
  kIsReplaced,
};
// Whether those who continue choose who they are, for which the launcher keeps a register.
inline bool chooses_members(Loss l) { return l == Loss::kIsSurvived || l == Loss::kIsReplaced; }
struct Losses {
  Loss loss = Loss::kEndsAll;
  double patience = 60;     // in seconds, as in Supervisor
  int restarts = 0;         // fresh workers in one seat, with kIsReplaced
  bool has_server = false;  // the last rank only serves
};
// The exit statuses of the programs; kExitGivenUp is that of a worker without which the others continue.
inline constexpr int kExitRuntime = 1, kExitUsage = 2, kExitGivenUp = 3, kExitInterrupted = 130;
// How long to wait for workers that the others have given up, once the others have finished. `deadline` is
// that of a wait between workers, which may be forever.
inline double patience_of_launcher(double deadline) { return std::min(deadline, 60.0); }

}  // namespace skein::apps
