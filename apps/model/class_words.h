// What a run says of its classes at the start.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace skein::apps {

// "cat, dog, swan"; of many "cat, dog, eagle, ... (1000 in all)", as far as they fit in `width` bytes, at
// least the first.
std::string list_names(const std::vector<std::string>&, size_t width = 90);

// Lines for the log: the names, and the classes of which one of the two splits has no image.
std::vector<std::string> describe_classes(const data::Split&);

}  // namespace skein::apps
