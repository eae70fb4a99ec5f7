// Shares one data set among all workers of a process, so that a hundred worker threads hold it once.
#pragma once
#include "data/source.h"

namespace skein::apps {

// Like data::open_data(), but sources that this process has open with the same
// arguments are shared. Thread-safe.
data::Split open_shared(const std::string& spec, uint64_t seed);

}  // namespace skein::apps
