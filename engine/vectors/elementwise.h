// A pass over flat vectors is a function of numbers and a list of what it reads and writes:
//
//   struct Lerp {
//     HD void operator()(float& y, float x, float t) const { y += t * (x - y); }
//   };
//   each_element(y, Lerp(), Change(y), Read(x), Factor(t));
//
// It runs by elements on the host and by packets of 16 bytes on a GPU.
#pragma once
#include <type_traits>
#include <utility>

#include "engine/loops/moved_bytes.h"
#include "engine/vectors/packets.h"
#include "engine/vectors/segments.h"
#include "engine/vectors/vec.h"

namespace skein {

// The floats of N neighboring elements, and a number that they share.
template <int N>
struct Numbers {
  float v[N];
  HD float& operator[](int j) { return v[j]; }
};
template <class T>
struct Shared {
  T value;
  HD T operator[](int) const { return value; }
};

// Elements [i, i + N) of a vector. A single element is not loaded as a pack, so that the host's loops are
// plain loads and stores.
template <int N, class T>
HD Numbers<N> load_numbers(const T* from, int64_t i) {
  Numbers<N> n;
  if constexpr (N == 1) {
    n[0] = float(from[i]);
  } else {
    const Pack<T, N> p = load<N>(from + i);
    for (int j = 0; j < N; ++j) n[j] = float(p.v[j]);
  }
  return n;
}
template <int N, class T>
HD void store_numbers(T* to, int64_t i, const Numbers<N>& n) {
  if constexpr (N == 1)
    to[i] = T(n.v[0]);
  else
    store(to + i, rounded<T>(n.v));
}
template <class T>
bool allows_packets(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % (kPacket * sizeof(T)) == 0;
}

// What the function's parameters stand for, in their order. Elements are converted to float as they are
// loaded and rounded to the vector's type as they are stored.

// float: an element of a vector that is read. T may be void, here and in Change and Write: there is no such
// vector, the number is 0, and nothing is loaded or stored.
template <class T = float>
struct Read {
  static constexpr int64_t kMoved = sizeof(T);  // bytes of an element
  const T* x;
  explicit Read(const Tensor& t) : x(t.in<T>()) {}
  template <int N>
  HD Numbers<N> load(int64_t i) const {
    return load_numbers<N>(x, i);
  }
  bool aligned() const { return allows_packets(x); }
};
// float&: an element that is read and written.
template <class T = float>
struct Change {
  static constexpr int64_t kMoved = 2 * sizeof(T);
  T* y;
  explicit Change(const Tensor& t) : y(t.out<T>()) {}
  template <int N>
  HD Numbers<N> load(int64_t i) const {
    return load_numbers<N>(y, i);
  }
  template <int N>
  HD void store(int64_t i, const Numbers<N>& n) const {
    store_numbers(y, i, n);
  }
  bool aligned() const { return allows_packets(y); }
};
// float&: an element that is written and begins as 0.
template <class T = float>
struct Write {
  static constexpr int64_t kMoved = sizeof(T);
  T* y;
  explicit Write(const Tensor& t) : y(t.out<T>()) {}
  template <int N>
  HD Numbers<N> load(int64_t) const {
    return {};
  }
  template <int N>
  HD void store(int64_t i, const Numbers<N>& n) const {
    store_numbers(y, i, n);
  }
  bool aligned() const { return allows_packets(y); }
};
struct Absent {
  template <int N>
  HD Numbers<N> load(int64_t) const {
    return {};
  }
};
template <>
struct Read<void> : Absent {
  explicit Read(const Tensor&) {}
};
template <>
struct Change<void> : Absent {
  explicit Change(const Tensor&) {}
};
template <>
struct Write<void> : Absent {
  explicit Write(const Tensor&) {}
};
// float&: as Write, of a tensor that may be empty.
struct WriteIfGiven : Absent {
  float* y;
  explicit WriteIfGiven(const Tensor& t) : y(t ? t.out<float>() : nullptr) {}
  template <int N>
  HD void store(int64_t i, const Numbers<N>& n) const {
    if (y) store_numbers(y, i, n);
  }
  bool aligned() const { return allows_packets(y); }
};
// float: one number for all elements.
struct Factor {
  Scalar a;
  explicit Factor(Scalar s) : a(s) {}
  template <int N>
  HD Shared<float> load(int64_t) const {
    return {a.get()};
  }
  void settle() { a = Scalar(a.get()); }
};
// float: the number that belongs to the segment of the element. The host's loop runs block by block: enter()
// reads the number of a block, which is then the same for all of its elements.
struct OfSegment {
  const float* numbers;
  const int32_t* of_block;
  float entered = 0;
  OfSegment(const Segments& s, const Tensor& each)
      : numbers(each.in<float>()), of_block(s.of_block().in<int32_t>()) {}
  template <int N>
  HD Shared<float> load(int64_t i) const {
    return {numbers ? numbers[of_block[i / Segments::kBlock]] : entered};
  }
  void enter(int64_t i) { entered = numbers[of_block[i / Segments::kBlock]], numbers = nullptr; }
};
// bool: true of the elements [0, end).
struct Below {
  int64_t end;
  struct Indices {
    int64_t i, end;
    HD bool operator[](int j) const { return i + j < end; }
  };
  template <int N>
  HD Indices load(int64_t i) const {
    return {i, end};
  }
};
// float: 1 if there is a flag `on`, in the device's memory, and it is 0; else 0. A bool would become a
// branch, which keeps the host's loops from being vectorized.
struct IsOff {
  const float* on;
  float off = 0;
  explicit IsOff(const float* flag) : on(flag) {}
  template <int N>
  HD Shared<float> load(int64_t) const {
    return {on && *on == 0 ? 1.f : off};
  }
  void settle() { off = on && *on == 0 ? 1.f : 0.f, on = nullptr; }
};

// The pass that each_element() runs. Before its loop the host calls settle(), which reads what lies in slots:
// a loop that reads a slot for each element, which its stores might change, is not vectorized.
template <class A>
inline constexpr bool kEnters = requires(A& a) {
  a.enter(0);
};
template <class A>
constexpr int64_t moved_by() {
  if constexpr (requires { A::kMoved; }) return A::kMoved;
  return 0;
}
template <size_t, class A>
struct Argument {
  A a;
};
template <class F, class Indices, class... A>
struct Elementwise;
template <class F, size_t... I, class... A>
struct Elementwise<F, std::index_sequence<I...>, A...> : Argument<I, A>... {
  F f;
  static constexpr bool kByBlocks = (kEnters<A> || ...);
  static constexpr int64_t kMoved = (moved_by<A>() + ... + 0);  // bytes of an element of all vectors
  void settle() { (settle_one(Argument<I, A>::a), ...); }
  void enter(int64_t i) { (enter_one(Argument<I, A>::a, i), ...); }
  bool aligned() const { return (is_aligned(Argument<I, A>::a) && ...); }
  template <int N>
  HD void run(int64_t i) const {
    compute<N>(i, Argument<I, A>::a.template load<N>(i)...);
  }

 private:
  template <int N, class... V>
  HD void compute(int64_t i, V... v) const {
    for (int j = 0; j < N; ++j) f(v[j]...);
    (store_one(Argument<I, A>::a, i, v), ...);
  }
  template <class B, class V>
  HD static void store_one(const B& a, int64_t i, const V& v) {
    if constexpr (requires { a.store(i, v); }) a.store(i, v);
  }
  template <class B>
  static void settle_one(B& a) {
    if constexpr (requires { a.settle(); }) a.settle();
  }
  template <class B>
  static void enter_one(B& a, int64_t i) {
    if constexpr (requires { a.enter(i); }) a.enter(i);
  }
  template <class B>
  static bool is_aligned(const B& a) {
    if constexpr (requires { a.aligned(); }) return a.aligned();
    return true;
  }
};

// Calls f for each element of y and of the vectors among the arguments, which are as long and on its device.
template <class F, class... A>
void each_element(const Tensor& y, F f, A... a) {
  using Pass = Elementwise<F, std::index_sequence_for<A...>, A...>;
  MovedBytes::count(y.size() * Pass::kMoved);
  run_pass(y.device(), y.size(), Pass{{a}..., f});
}

}  // namespace skein
