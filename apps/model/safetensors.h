// The safetensors file format: named tensors and string metadata. 8 bytes little endian: length of a JSON
// header; the header; the data. Types F32, BF16, F16, U8, I32, I64.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace skein::apps {

struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of the data
  const Tensor* find(const std::string& name) const;    // null if absent
};

// Writes the file atomically; tensors may be on any device. Throws BadFile (disk full, not writable) and then
// leaves an earlier file of this name unchanged. Returns the BLAKE2b-256 of the file, in hexadecimal.
std::string write_safetensors(const std::string& path, const TensorFile&);

// Reads tensors to the CPU, as windows of one block of memory. Throws BadFile naming the path and the fault:
// not a safetensors file, truncated, overlapping or missing bytes, an unsupported type. `expected` is the
// BLAKE2b-256 that the bytes read must have; empty means any.
TensorFile read_safetensors(const std::string& path, const std::string& expected = "");

}  // namespace skein::apps
