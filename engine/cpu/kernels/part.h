// Whole vectors and the rest after them: a loop over any number of elements is written once,
// its end included.
#pragma once
#include "engine/cpu/simd.h"

namespace skein::cpu {

// How a step reads and writes: a whole vector, or the first n floats of one.
template <class V>
struct Whole {
  template <class T>
  V get(const T* p, V = V{}) const {
    return load<V>(p);
  }
  template <class T>
  void put(T* p, V v) const {
    store(p, v);
  }
  template <class T>
  void put(T* p, V v, bool past_caches) const {
    past_caches ? stream(p, v) : store(p, v);
  }
  WordsOf<V> get_bits(const bf16* p) const { return load_bits_of<V>(p); }
  WordsOf<V> get_bytes(const uint8_t* p) const { return load_bytes_of<V>(p); }
  void put_bytes(uint8_t* p, WordsOf<V> v) const { store_bytes_of<V>(p, v); }
};
template <class V>
struct Part {
  int64_t n;
  template <class T>
  V get(const T* p, V missing = V{}) const {
    for (int64_t i = 0; i < n; ++i) missing[i] = float(p[i]);
    return missing;
  }
  template <class T>
  void put(T* p, V v) const {
    for (int64_t i = 0; i < n; ++i) p[i] = T(v[i]);
  }
  template <class T>
  void put(T* p, V v, bool) const {
    put(p, v);
  }
  WordsOf<V> get_bits(const bf16* p) const {
#ifdef __x86_64__
    if constexpr (kWidth<V> == 16) {
      const unsigned short mask = static_cast<unsigned short>((1 << n) - 1);
      return WordsOf<V>(_mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, p)));
    }
#endif
    WordsOf<V> v{};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i].bits;
    return v;
  }
  WordsOf<V> get_bytes(const uint8_t* p) const {
    WordsOf<V> v{};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  void put_bytes(uint8_t* p, WordsOf<V> v) const {
    for (int64_t i = 0; i < n; ++i) p[i] = uint8_t(v[i]);
  }
};

// Calls step(at, io) for every vector of n elements, the last with what is left.
template <class V, class Step>
inline void each_part(int64_t n, const Step& step) {
  int64_t at = 0;
  for (; at + kWidth<V> <= n; at += kWidth<V>) step(at, Whole<V>());
  if (at < n) step(at, Part<V>{n - at});
}

}  // namespace skein::cpu
