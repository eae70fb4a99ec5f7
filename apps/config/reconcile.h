// Makes a configuration consistent.
#pragma once
#include "apps/config/config.h"

namespace skein::apps {

// Refuses flags that are valid one by one but not together. Of two alternatives, the one from the stronger source wins. A
// rate or a weight decay from a weaker source than the choice of the optimizer becomes its default. Throws BadOption, which
// begins with the flag or its place in a file.
void reconcile(Config&, const Flags& = flags());

}  // namespace skein::apps
