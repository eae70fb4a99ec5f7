// A copy on the host that leaves the caches as they are.
#pragma once
#include <cstddef>

namespace skein {

// As memcpy, for what is not read soon. Where the processor allows, it is written past the caches, which keep
// what they hold, and `to` need not be read from memory first. By a team, if it is long.
void copy_past_caches(void* to, const void* from, size_t bytes);

}  // namespace skein
