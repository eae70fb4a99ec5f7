// A 16-bit copy of a flat f32 vector, so that the layers of a low-precision run need not round their weights
// at each use. The vector's storage owns it and knows when it is current.
#pragma once
#include <atomic>
#include <type_traits>

#include "engine/tensor.h"

namespace skein {

// `values` is one axis as long as the storage's f32 elements. `current`: every element is its f32 element,
// rounded. Any use of the f32 elements that could write them (Tensor::data, raw, out; copy_bytes to them)
// ends that, so code that writes need not know of the copy; sgd_update() and gem_update() of the whole vector
// write both and make it current. Only the thread that runs the steps writes it.
struct Narrow : Derived {
  Tensor values;
  std::atomic<int> trusting{0};
};

// Attaches to x a copy of this type (bf16 or f16). x is f32 and starts at the front of its own storage.
// May be called once.
void keep_narrow(const Tensor& x, DType);
// The same window of the copy, if x is a window of such a vector, the copy is of that type and a
// TrustNarrow lives; else {}.
Tensor narrow_of(const Tensor& x, DType);

// Makes the 16-bit copy of x current, if there is one. For a step of several passes, each over a part of x.
void refresh_narrow(const Tensor& x);

// While it lives x must not be written: a gradient is computed there. Makes the copy current, in one pass, if
// it is not, and lets narrow_of() return it. Does nothing for a vector without a copy.
class TrustNarrow {
 public:
  explicit TrustNarrow(const Tensor& x);
  ~TrustNarrow();
  TrustNarrow(const TrustNarrow&) = delete;

 private:
  std::shared_ptr<Narrow> narrow_;
};

// Used by a pass that writes all of x and can write its copy as well.
class NarrowPass {
 public:
  explicit NarrowPass(const Tensor& x);
  Tensor values;  // empty: x has no copy, or is a part of one that has
  // Calls f with the copy's type, bf16 or f16, or with void if there is no copy.
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
