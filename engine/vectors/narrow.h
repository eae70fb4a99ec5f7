// A 16-bit copy of a flat f32 vector, so that the layers of a low-precision run need not round their weights
// at each use. The vector's storage owns it and knows when it is current.
#pragma once
#include <atomic>
#include <type_traits>

#include "engine/tensor.h"

namespace skein {

// `values` is one axis as long as the storage's f32 elements. `current`: every element is its f32 element,
// rounded. Any use of the f32 elements that could write them (Tensor::data, raw, out; copy_bytes to them)
// ends that, so who writes need not know of the copy; sgd_update() and gem_update() of the whole vector
// write both and make it current. Written by the thread that steps.
struct Narrow : Derived {
  Tensor values;
  std::atomic<int> trusting{0};
};

// Gives x, f32, in storage of its own that it fills from the front, a copy of that type (bf16, f16); once.
void keep_narrow(const Tensor& x, DType);
// Of a window of such a vector: the same window of the copy, if it is of that type and inside
// a TrustNarrow; else {}.
Tensor narrow_of(const Tensor& x, DType);
// Whether x has a copy that is current.
bool narrow_is_current(const Tensor& x);

// While it lives nobody writes x: a gradient is taken there. Makes the copy current, in one pass, if it is
// not, and lets narrow_of() give it out. Does nothing for a vector without one.
class TrustNarrow {
 public:
  explicit TrustNarrow(const Tensor& x);
  ~TrustNarrow();
  TrustNarrow(const TrustNarrow&) = delete;

 private:
  std::shared_ptr<Narrow> narrow_;
};

// For a pass that writes all of x, and can write its copy as well.
class NarrowPass {
 public:
  explicit NarrowPass(const Tensor& x);
  Tensor values;  // empty: x has no copy, or is a part of one that has
  // Calls f with the copy's type, bf16 or f16, or with void where there is no copy.
  template <class F>
  void with(F f) const {
    if (!values) return f(std::type_identity<void>());
    visit_float(values.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) == 2) f(std::type_identity<T>());
    });
  }
  void done();  // the pass is queued and writes both: the copy is current

 private:
  std::shared_ptr<Narrow> narrow_;
};

}  // namespace skein
