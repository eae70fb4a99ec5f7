// Makes a configuration consistent.
#pragma once
#include "apps/config/config.h"

namespace skein::apps {

// Refuses words that are wrong, and flags that are valid one by one but not together. Of two alternatives the
// one from the stronger source wins. A rate or a weight decay from a weaker source than the optimizer's
// becomes the optimizer's default. Throws BadOption, which begins with the flag or its place in a file.
void reconcile(Config&, const Flags& = flags());

}  // namespace skein::apps
