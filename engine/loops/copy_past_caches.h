// Copies on the host that leave the caches as they are.
#pragma once
#include <cstddef>

namespace skein {

// As memcpy, for what is not read soon. Where the processor allows, it is written past the caches, which keep
// what they hold, and `to` need not be read from memory first. By a team, if it is long.
void copy_past_caches(void* to, const void* from, size_t bytes);

// The same by the calling thread, for loops that make a few lines of the caches at once; `to` begins at one.
// fence_lines() makes them visible to other threads.
constexpr size_t kCacheLine = 64;
void put_lines(void* to, const void* from, size_t lines);
void fence_lines();

}  // namespace skein
