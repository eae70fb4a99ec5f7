// Several neighboring elements loaded and stored as one: 16 bytes a thread where shapes and addresses allow.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "engine/cuda/handles.h"

namespace skein::cuda {

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
#ifdef __CUDA_ARCH__  // a plain store would be taken apart into the members; L2 is where stores go anyway
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

// A number known to the compiler, for generic lambdas that pass it on as a template argument.
template <int N>
struct Const {
  static constexpr int value = N;
};

// Calls f(T{}, Const<V>{}) with the widest V for rows of `inner` elements of these tensors, all of one type.
template <class F>
void with_packs(int64_t inner, std::initializer_list<const Tensor*> tensors, F f) {
  int64_t alignment = 16;
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors)
    if (*t) {
      alignment = std::min(alignment, common_alignment({t->raw()}));
      if (!first) first = t;
    }
  visit_float(first->dtype(), [&](auto zero) {
    using T = decltype(zero);
    constexpr int kWide = int(16 / sizeof(T));
    if (alignment == 16 && inner % kWide == 0)
      f(zero, Const<kWide>{});
    else
      f(zero, Const<1>{});
  });
}

}  // namespace skein::cuda
