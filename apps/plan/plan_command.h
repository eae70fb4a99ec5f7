// The words of the commands that a plan prints.
#pragma once
#include <string>

#include "apps/config/config.h"

namespace skein::apps {

// What the user typed, as a shell reads it, without what a setting of the plan decides, which is to follow:
// algorithm, its flags, wire and prediction. `fewer`: also without what says how many workers there are and
// where. A file or recipe that gives such flags gives way to the rest of what it gives.
std::string typed_words(const Config&, const char* const* argv, bool fewer = false);

}  // namespace skein::apps
