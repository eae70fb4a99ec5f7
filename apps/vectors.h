// Named vectors in files: .npy (one, f4 or f8) and .safetensors (several), as one flat fp32 vector.
#pragma once
#include <string>
#include <vector>

#include "engine/tensor.h"

namespace skein::apps {

// A file's tensors laid end to end, by name; the types and shapes they have in the file.
struct Vectors {
  struct Item {
    std::string name;  // empty in a .npy
    std::string type;  // "F32", "BF16"; "<f4", "<f8" in a .npy
    std::vector<int64_t> shape;
    bool fortran = false;  // order of elements in a .npy
    int64_t size() const;
  };
  bool npy = false;
  std::vector<Item> items;
  Tensor flat;  // fp32, on the CPU
  // "weight F32 [3, 4]; bias F32 [4]": equal texts may be averaged.
  std::string layout() const;
};

// By the ending of the name. Throws BadFile naming path and fault: another ending, truncated, not floating point.
Vectors read_vectors(const std::string& path);
// Back to the same kind of file in the same types; `like` says names, types and shapes. f8 gets fp32 values. Atomic.
// Throws BadOption if the ending does not fit `like`, BadFile if it cannot be written.
void write_vectors(const std::string& path, const Vectors& like);
// What a vector of our own looks like in a file of that name.
Vectors plain_vector(const Tensor& flat, const std::string& path);

}  // namespace skein::apps
