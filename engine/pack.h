// Several neighboring elements loaded and stored as one.
#pragma once
#include <cstring>

#include "engine/base.h"

namespace skein {

// Its address is a multiple of its size.
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
#ifdef __CUDA_ARCH__  // a plain store of eight is taken apart into the members; L2 is where stores go anyway
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

}  // namespace skein
