// One rank's state as a safetensors file: a walk over named fields, written or read.
#pragma once
#include <functional>
#include <string>

#include "engine/archive.h"

namespace skein::apps {

// Names every field of a rank's state once; serves saving and loading.
using Walk = std::function<void(Archive&)>;

// Saves tensors as tensors, strings as U8 tensors and numbers as metadata, exact to the bit. Returns the
// file's BLAKE2b-256. Throws BadFile.
std::string save_state(const std::string& path, const Walk&);

// Tensors are written in place, on their device. The checksum is verified before the walk starts. Throws
// BadFile if a field has another shape or type, is missing, or is not asked for by the walk.
void load_state(const std::string& path, const std::string& checksum, const Walk&);

}  // namespace skein::apps
