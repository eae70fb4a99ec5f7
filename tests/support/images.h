// What tests of modules share: random images, and how far two vectors are apart.
#pragma once
#include "engine/random.h"
#include "engine/vectors/vec.h"

namespace skein::nn {

inline Tensor random_image(Shape s, DType t = kF32, uint64_t seed = 1) {
  Tensor x(s, t);
  fill_normal(x, {.seed = seed}, 0, 1);
  return x;
}
inline double distance(const Tensor& a, const Tensor& b) {
  Tensor d = a.clone();
  axpy(d, -1.f, b);
  return norm(d);
}

}  // namespace skein::nn
