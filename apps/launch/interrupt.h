// Turns Ctrl-C, a hang-up, SIGTERM and SIGUSR1 into flags that the training loop checks between steps.
#pragma once
#include <cstdio>
#include <string>

namespace skein::apps {

// From now on the first SIGINT, SIGTERM or SIGHUP only sets the flag; a second one, at least a second later,
// ends the program as usual. (One keystroke or one scancel can reach a process twice: through its launcher
// and directly. A closed terminal hangs up any number of times, so SIGHUP never counts as the second one.) A
// SIGHUP that was ignored, as under nohup, stays ignored. What SIGTERM asks: that the whole job stops, as by
// SIGINT, or that this worker leaves it. In the second case SIGINT (which is what Supervisor makes of a
// SIGTERM to itself) and SIGHUP still stop the job, at any time after it.
enum class Termination : uint8_t { kStopsAll, kLeaves };
void catch_interrupts(Termination = Termination::kStopsAll);
// From now on writing to a stdout or stderr whose reader is gone fails instead of ending the program. Later
// output must tolerate that, so it goes through say() below and not through fmt::print, which throws.
void outlive_readers();
void say(std::FILE*, const std::string&);
// From now on SIGUSR1 sets the flag, however often it comes, and a second flag that says it was SIGUSR1.
void catch_requeue_signal();

bool interrupted();          // the job is to stop
bool told_to_leave();        // with Termination::kLeaves: this worker got SIGTERM
bool asked_to_come_again();  // SIGUSR1 came: stop now and continue in a later job

}  // namespace skein::apps
