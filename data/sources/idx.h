// IDX: MNIST's format, parsed from bytes in memory.
#pragma once
#include <string>

#include "data/sources/memory_source.h"

namespace skein::data {

// The images of one file with the labels of the other; either may be gzipped. Throws BadFile if a header does
// not describe exactly the bytes that follow it, or they do not belong together.
MemoryImages parse_idx(const PathAndBytes& images, const PathAndBytes& labels);

}  // namespace skein::data
