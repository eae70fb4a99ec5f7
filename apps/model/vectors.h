// Named vectors in files: .npy (one, f2, f4 or f8) and .safetensors (several), as one flat vector.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace skein::apps {

// A file's tensors laid end to end, by name; the types and shapes they have in the file.
struct Vectors {
  struct Item {
    std::string name;  // empty in a .npy
    std::string type;  // "F32", "BF16", "F16"; "<f2", "<f4", "<f8" in a .npy
    std::vector<int64_t> shape;
    bool fortran = false;  // order of elements in a .npy
    int64_t size() const;
  };
  bool npy = false;
  std::vector<Item> items;
  Tensor flat;  // fp32, on the CPU; of f8 the bits of its doubles as i64 (comm/communicator/numbers.h)
  // .safetensors only: whole numbers (counters) have no mean and stay as they were read,
  // as does the metadata.
  std::vector<std::pair<std::string, Tensor>> kept = {};
  std::map<std::string, std::string> metadata = {};
  // "weight F32 [3, 4]; bias F32 [4]": equal texts may be averaged.
  std::string layout() const;
  std::string place_of(int64_t at) const;  // "tensor 'weight' [1, 2]": element `at` of `flat` in the file
};

// What `path` means: itself, or the model.safetensors of a run's directory. BadFile where that has none.
std::string vectors_file(const std::string& path);

// By the ending of the name. Throws BadFile naming path and fault: another ending,
// truncated, not floating point.
Vectors read_vectors(const std::string& path);
// BadFile naming the first number that is infinite or no number, or too large for a sum over so many workers.
void check_numbers(const std::string& path, const Vectors&, int workers);
// Back to the same kind of file in the same types; `like` says names, types and shapes.
// Atomic. Throws BadOption if the ending does not fit `like`, BadFile if it cannot be written. `provenance`,
// if given, is a JSON text on where the numbers come from: the metadata entry "gossip_avg" of a .safetensors,
// or PATH.json beside a .npy.
void write_vectors(const std::string& path, const Vectors& like, const std::string& provenance = "");
// Whether a result of this layout can have that name; throws BadOption as write_vectors would.
void check_ending(const std::string& path, bool npy);
// What a vector of our own looks like in a file of that name.
Vectors plain_vector(const Tensor& flat, const std::string& path);

}  // namespace skein::apps
