// All kernels for vectors V.
#pragma once
#include "engine/cpu/kernels/depthwise.h"
#include "engine/cpu/kernels/grouped.h"
#include "engine/cpu/kernels/norm.h"
#include "engine/cpu/kernels/pack.h"
#include "engine/cpu/kernels/pool.h"
#include "engine/cpu/kernels/tile.h"
#include "engine/cpu/kernels/winograd.h"

namespace skein::cpu {

// 16 or 32 registers hold the sums, two vectors of lanes and what is spread over them.
template <class V>
inline constexpr int kTileRows = kWidth<V> == 16 ? 12 : 6;

template <class V>
constexpr Kernels kernels_of() {
  return {kWidth<V>,
          {norm_kernels<V, float>(), norm_kernels<V, bf16>(), norm_kernels<V, f16>()},
          {pool_kernels<V, float>(), pool_kernels<V, bf16>(), pool_kernels<V, f16>()},
          transpose_cells<V>,
          tile_kernels<Singles<V>, kTileRows<V>, 2>(),
          tile_kernels < Singles<V>,
          kTileRows<V>,
          kWidth<V> == 16 ? 1 : 2 > (),
          depthwise_kernels<V>(),
          grouped_kernels<Singles<V>>(),
          {tile_finish<V, float>, tile_finish<V, bf16>, tile_finish<V, f16>},
          {pack_cells<V, float>, pack_cells<V, bf16>, pack_cells<V, f16>},
          pack_cells<V, Half>,
          pair_cells<V>,
          {blend_elements<V, float>, blend_elements<V, bf16>, blend_elements<V, f16>},
          winograd_kernels<2, V>(),
          winograd_kernels<4, V>()};
}

}  // namespace skein::cpu
