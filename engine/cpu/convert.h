// Conversions between the 16-bit floats and f32 in bulk, sums and a ReLU in place, and scratch memory. What
// is rounded to bf16 may become 0 below 2^-126 where the processor rounds it.
#pragma once
#include "engine/tensor.h"

namespace skein::cpu {

// Uninitialized, from the caching allocator.
inline Tensor scratch_f32(int64_t n) { return Tensor({n}, kF32); }
inline Tensor scratch_bytes(int64_t n) { return Tensor({n}, kU8); }

void widen(float* y, const Tensor& x);  // x of any floating type; y holds as many elements
void narrow(const Tensor& y, const float* x);

// t itself if it is f32, else a widened copy.
Tensor as_f32(const Tensor& t);
// t itself if it is bf16, else a rounded copy.
Tensor as_bf16(const Tensor& t);
// t <- values + beta t, for t of a floating type and values f32 of the same size. If beta is 0, t may hold
// anything, NaN too.
void blend(const Tensor& t, const float* values, float beta);
void relu(const Tensor& t);  // t <- max(0, t), of a floating type; a NaN stays one
// t <- x + beta t, both of one floating type and size.
void add_scaled(const Tensor& t, const Tensor& x, float beta);

}  // namespace skein::cpu
