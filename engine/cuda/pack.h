// How many neighboring elements a thread takes at once: 16 bytes where shapes and addresses allow.
#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>

#include "engine/cuda/handles.h"
#include "engine/loops/pack.h"

namespace skein::cuda {

// A number known to the compiler, for generic lambdas that pass it on as a template argument.
template <int N>
struct Const {
  static constexpr int value = N;
};

// Calls f(T{}, Const<V>{}) with the widest V for rows of `inner` elements of these tensors, all of one type.
template <class F>
void with_packs(int64_t inner, std::span<const Tensor* const> tensors, F f) {
  int64_t alignment = 16;
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors)
    if (*t) {
      alignment = std::min(alignment, common_alignment({t->address()}));
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

template <class F>
void with_packs(int64_t inner, std::initializer_list<const Tensor*> tensors, F f) {
  with_packs(inner, std::span(tensors.begin(), tensors.size()), f);
}

}  // namespace skein::cuda
