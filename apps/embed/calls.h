// What a program that embeds Skein calls at the wrong time, or with a number that cannot be.
#pragma once
#include <string>

#include "engine/base.h"

namespace skein {

inline void demand(bool right, const std::string& otherwise) {
  if (!right) throw Error(otherwise);
}

}  // namespace skein
