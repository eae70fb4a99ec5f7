// The functions behind the rows of sources.def.
#pragma once
#include "data/source.h"

namespace skein::data {

#define SOURCE(name, open, source) Split open(const std::string& path, uint64_t seed);
#include "data/sources/sources.def"
#undef SOURCE

}  // namespace skein::data
