// Between bf16 and f32 in bulk, and the scratch memory the CPU backend works in.
#pragma once
#include "engine/tensor.h"

namespace skein::cpu {

// Uninitialized, from the caching allocator.
inline Tensor scratch_f32(int64_t n) { return Tensor({n}, kF32); }
inline Tensor scratch_bytes(int64_t n) { return Tensor({n}, kU8); }

void widen(float* y, const bf16* x, int64_t n);
void narrow(bf16* y, const float* x, int64_t n);

// t itself if it is f32, else a widened copy.
Tensor as_f32(const Tensor& t);
// t itself if it is bf16, else a rounded copy.
Tensor as_bf16(const Tensor& t);
// t <- values + beta t, for t f32 or bf16 and values f32 of the same size.
void blend(const Tensor& t, const float* values, float beta);

}  // namespace skein::cpu
