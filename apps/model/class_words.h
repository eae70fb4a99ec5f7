// What a run prints about its classes at the start.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace skein::apps {

// "cat, dog, swan", or "cat, dog, eagle, ... (1000 in all)" with as many as fit in `width`
// bytes, at least one.
std::string list_names(const std::vector<std::string>&, size_t width = 90);

// Lines for the log: the names, and the classes without an image in one of the two splits.
std::vector<std::string> describe_classes(const data::Split&);

}  // namespace skein::apps
