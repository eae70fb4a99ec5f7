// What strategies do to flat vectors, each in one pass over memory. Every function computes, bit for bit,
// what the functions of vec.h compute one after the other, on every device: no product is fused into a sum.
#pragma once
#include <vector>

#include "engine/vectors/vec.h"

namespace skein {

// The second half of a gossip step, two messages and two shares a pass:
//   y <- self x ;  y <- y + each of `in`, in order
//   for each of `sent`, a factor by which x went out rounded to `wire`:  y <- y + (factor x - rounded)
//   z <- by y, if z is given: push-sum's model
// y, x and z are f32, `in` is of any floating type; all have the same size and device. y may be x.
struct MixArgs {
  Tensor y, x;
  Scalar self = 1.f;
  std::vector<Tensor> in = {};
  std::vector<float> sent = {};
  DType wire = kF32;  // f32: nothing was rounded off
  Tensor z = {};
  Scalar by = 1.f;
};
void mix(const MixArgs&);

// x <- x + alpha (z - x) ;  z <- z + beta (mean - z), from the old x and z: synchronous elastic averaging.
void elastic_pull(const Tensor& x, const Tensor& z, const Tensor& mean, Scalar alpha, Scalar beta);
// e <- alpha (x - z) ;  z <- z + e: one worker's pull at the center. e may be x.
void elastic_commit(const Tensor& z, const Tensor& e, const Tensor& x, Scalar alpha);

// An exchange between two: mean <- sent / 2 + received / 2 ;  x <- mean or, if x has `moved` since it was
// sent, x <- x + mean ;  x <- x - sent. `received` is of any floating type.
void go_half_way(const Tensor& x, const Tensor& sent, const Tensor& received, bool moved);

// The step of a momentum over rounds, with D = mean - z:
//   m <- decay m + gain D ;  z <- z + along m + beside D ;  x <- z, if x is given
struct OuterStep {
  Tensor z, m, mean, x = {};
  Scalar decay = 0.f, gain = 1.f, along = 1.f, beside = 0.f;
};
void outer_step(const OuterStep&);

}  // namespace skein
