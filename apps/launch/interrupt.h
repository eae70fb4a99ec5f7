// Ctrl-C, a hang-up, SIGTERM and SIGUSR1 as flags that the training loop looks at between steps.
#pragma once
#include <cstdio>
#include <string>

namespace skein::apps {

// From now on the first SIGINT, SIGTERM or SIGHUP only sets the flag; a second one, a second later or more,
// ends the program as ever. (One keystroke or one scancel can reach a process twice: through its launcher and
// by itself. A closed terminal hangs up any number of times, so SIGHUP never counts as the second one.) A
// SIGHUP that was ignored, as below nohup, stays ignored.
void catch_interrupts();
// From now on writing to a stdout or stderr that nobody reads any more fails instead of ending the program.
// What is said after that must not mind: say() below, not fmt::print, which throws.
void outlive_readers();
void say(std::FILE*, const std::string&);
// From now on SIGUSR1 sets the flag, however often it comes, and another that says it was SIGUSR1.
void catch_requeue_signal();

bool interrupted();
bool asked_to_come_again();  // by SIGUSR1: stop now and go on in a later job

}  // namespace skein::apps
