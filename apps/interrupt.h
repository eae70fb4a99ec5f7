// Ctrl-C and SIGTERM as a flag that the training loop looks at between steps.
#pragma once

namespace skein::apps {

// From now on the first SIGINT or SIGTERM only sets the flag; the second ends the program as ever.
void catch_interrupts();
bool interrupted();

}  // namespace skein::apps
