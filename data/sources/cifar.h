// CIFAR: the binary versions' records, read from bytes in memory.
#pragma once
#include <string>
#include <vector>

#include "data/sources/memory_source.h"

namespace skein::data {

// Appends a file's records, of so many label bytes (CIFAR-10: 1, CIFAR-100: 2) and an image each. Throws
// BadFile if they are not whole.
void append_cifar(const PathAndBytes&, int label_bytes, MemoryImages&);
// The first `count` lines that are not empty; a number replaces each one that is missing.
std::vector<std::string> cifar_names(const std::string& lines, size_t count);

}  // namespace skein::data
