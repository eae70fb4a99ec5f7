// Named vectors in files: .npy (one, f2, f4 or f8) and .safetensors (several), as one flat vector.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace skein::apps {

// A file's tensors by name, concatenated, with their types and shapes in the file.
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
  Tensor flat;  // fp32, on the CPU; for f8 the bits of the doubles as i64 (comm/communicator/numbers.h)
  // .safetensors only: whole numbers (counters) have no mean and are kept unchanged, as are the metadata.
  std::vector<std::pair<std::string, Tensor>> kept = {};
  std::map<std::string, std::string> metadata = {};
  // "weight F32 [3, 4]; bias F32 [4]": vectors of equal layout may be averaged.
  std::string layout() const;
  std::string place_of(int64_t at) const;  // "tensor 'weight' [1, 2]": element `at` of `flat` in the file
};

// The file that `path` means: itself, or the model.safetensors of a run's directory. Throws BadFile
// if that has none.
std::string vectors_file(const std::string& path);

// Reads a file by its suffix. Throws BadFile naming path and fault: unknown suffix,
// truncated, not floating point.
Vectors read_vectors(const std::string& path);
// Throws BadFile naming the first number that is infinite, NaN, or too large for a sum over so many workers.
void check_numbers(const std::string& path, const Vectors&, int workers);
// Writes the same kind of file with the names, types and shapes of `like`, atomically. Throws
// BadOption if the suffix does not fit `like`, BadFile if it cannot be written. `provenance`, if
// given, is a JSON text about the origin of the numbers: the metadata entry "gossip_avg" of a
// .safetensors, or PATH.json beside a .npy.
void write_vectors(const std::string& path, const Vectors& like, const std::string& provenance = "");
// Throws BadOption, as write_vectors() would, if a result of this layout cannot have this name.
void check_ending(const std::string& path, bool npy);
// What a vector of our own looks like in a file of that name.
Vectors plain_vector(const Tensor& flat, const std::string& path);

}  // namespace skein::apps
