// One data set for all workers of a process: a hundred of them as threads hold it once.
#pragma once
#include "data/source.h"

namespace skein::apps {

// As data::open_data, but what this process has open under the same words is shared. Any thread.
data::Split open_shared(const std::string& spec, uint64_t seed);

}  // namespace skein::apps
