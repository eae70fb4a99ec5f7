// Turns Ctrl-C, a hang-up, SIGTERM and SIGUSR1 into flags that the training loop checks between steps.
#pragma once
#include <cstdio>
#include <string>

namespace skein::apps {

// From now on the first SIGINT, SIGTERM or SIGHUP only sets the flag; a second one, at least a second later,
// ends the program as usual. (One keystroke or one scancel can reach a process twice: through its launcher
// and directly. A closed terminal hangs up any number of times, so SIGHUP never counts as the second one.) A
// SIGHUP that was ignored, as under nohup, stays ignored.
void catch_interrupts();
// From now on writing to a stdout or stderr whose reader is gone fails instead of ending the program. Later
// output must tolerate that, so it goes through say() below and not through fmt::print, which throws.
void outlive_readers();
void say(std::FILE*, const std::string&);
// From now on SIGUSR1 sets the flag, however often it comes, and a second flag that says it was SIGUSR1.
void catch_requeue_signal();

bool interrupted();
bool asked_to_come_again();  // SIGUSR1 came: stop now and continue in a later job

}  // namespace skein::apps
