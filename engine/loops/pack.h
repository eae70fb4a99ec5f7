// Several neighboring elements that are loaded and stored together.
#pragma once
#include <cstring>
#include <type_traits>

#include "engine/dtype.h"

namespace skein {

// V elements at an address that is a multiple of their size.
template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T v[V];
};

template <int V, class T>
HD Pack<T, V> load(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}

template <class T, int V>
HD void store(T* to, const Pack<T, V>& p) {
#ifdef __CUDA_ARCH__  // the compiler splits a plain store of eight members; stores go to L2 anyway
  if constexpr (sizeof p == 16) {
    uint4 words;
    memcpy(&words, &p, 16);
    __stcg(reinterpret_cast<uint4*>(to), words);
    return;
  } else if constexpr (sizeof p == 8) {
    uint2 words;
    memcpy(&words, &p, 8);
    __stcg(reinterpret_cast<uint2*>(to), words);
    return;
  }
#endif
  *reinterpret_cast<Pack<T, V>*>(to) = p;
}

// Floats as a pack of T. A GPU's 16-bit conversions take two floats at a time, from
// compute capability 8.0 on.
template <class T, int V>
HD Pack<T, V> rounded(const float (&from)[V]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  constexpr bool kPairs = sizeof(T) == 2 && V % 2 == 0;
#else
  constexpr bool kPairs = false;
#endif
  Pack<T, V> p;
  if constexpr (kPairs) {
    uint32_t pairs[V / 2];
    for (int i = 0; i < V / 2; ++i) {
      if constexpr (std::is_same_v<T, bf16>)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[i]) : "f"(from[2 * i + 1]), "f"(from[2 * i]));
      else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[i]) : "f"(from[2 * i + 1]), "f"(from[2 * i]));
    }
    memcpy(&p, pairs, sizeof p);
  } else {
    for (int v = 0; v < V; ++v) p.v[v] = T(from[v]);
  }
  return p;
}

}  // namespace skein
