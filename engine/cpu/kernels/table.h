// All kernels for vectors V.
#pragma once
#include "engine/cpu/kernels/norm.h"
#include "engine/cpu/kernels/pool.h"

namespace skein::cpu {

template <class V>
constexpr Kernels kernels_of() {
  return {kWidth<V>,
          {norm_kernels<V, float>(), norm_kernels<V, bf16>(), norm_kernels<V, f16>()},
          {pool_kernels<V, float>(), pool_kernels<V, bf16>(), pool_kernels<V, f16>()}};
}

}  // namespace skein::cpu
