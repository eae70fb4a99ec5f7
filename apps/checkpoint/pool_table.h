// PoolTable: what one worker tells the others of its state before any of it travels.
#pragma once
#include <map>
#include <string>

#include "engine/tensor.h"

namespace skein::apps {

struct PoolTable {
  struct Field {
    DType type = kF32;
    Shape shape;
    std::string hash;
    bool operator==(const Field&) const = default;
  };
  bool has_state = false;
  std::map<std::string, Field> tensors;
  std::map<std::string, int64_t> wholes;
  std::map<std::string, double> reals;  // every bit travels
};

// The BLAKE2b-256 of the BLAKE2b-256 of pieces of the bytes, which are computed side by side. In hexadecimal.
// The tensor lies in the host's memory.
std::string hash_of(const Tensor&);

std::string to_text(const PoolTable&);
// Throws Error unless it is the text of a table.
PoolTable table_of(const std::string& text);

}  // namespace skein::apps
