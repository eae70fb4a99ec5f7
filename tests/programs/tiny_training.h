// Trainings that take no time, and files of images in the MNIST family's format.
#pragma once
#include "tests/support/program.h"

namespace skein {

inline constexpr const char* kTiny =
    "$TRAIN --data synthetic:8x8x1,classes=3,train=64,test=30 --model mlp --batch-size 16 ";

inline std::string big_endian(uint32_t v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }
// n gray images of 8x8 and labels modulo `classes`, in the MNIST family's format; `first` replaces label 0.
inline void write_idx(const testing_programs::Workplace& w, const std::string& dir, int n, int classes,
                      char first = 0) {
  std::string images = big_endian(0x803) + big_endian(uint32_t(n)) + big_endian(8) + big_endian(8);
  std::string labels = big_endian(0x801) + big_endian(uint32_t(n));
  images += std::string(size_t(n) * 64, 'x');
  for (int i = 0; i < n; ++i) labels += char(i == 0 && first ? first : i % classes);
  for (const char* part : {"train", "t10k"}) {
    w.write(dir + "/" + part + "-images-idx3-ubyte", images);
    w.write(dir + "/" + part + "-labels-idx1-ubyte", labels);
  }
}

}  // namespace skein
