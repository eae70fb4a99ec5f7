// Ctrl-C, SIGTERM and SIGUSR1 as flags that the training loop looks at between steps.
#pragma once

namespace skein::apps {

// From now on the first SIGINT or SIGTERM only sets the flag; a second one, a second later or more, ends the
// program as ever. (One keystroke or one scancel can reach a process twice: through its launcher and by
// itself.)
void catch_interrupts();
// From now on SIGUSR1 sets the flag, however often it comes, and another that says it was SIGUSR1.
void catch_requeue_signal();

bool interrupted();
bool asked_to_come_again();  // by SIGUSR1: stop now and go on in a later job

}  // namespace skein::apps
