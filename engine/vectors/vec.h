// Algebra on flat fp32 vectors: all that optimizers and distributed strategies need. None of it is recorded
// on the tape. Every function takes same-sized tensors on one device, runs on the device's current stream and
// writes its first argument; the outputs may not overlap the inputs unless they are the same tensor.
#pragma once
#include "engine/tensor.h"

namespace skein {

class Segments;  // engine/vectors/segments.h

// A factor a kernel reads: a number, or a slot in device memory written once a step, so that a captured
// graph of kernels can be replayed with new values.
struct Scalar {
  float value = 0;
  const float* slot = nullptr;
  Scalar(float v) : value(v) {}
  Scalar(double v) : value(float(v)) {}
  static Scalar at(const float* device_slot) {
    Scalar s(0.f);
    s.slot = device_slot;
    return s;
  }
  HD float get() const { return slot ? *slot : value; }
};

void fill(const Tensor& y, Scalar a);                          // y <- a
void copy(const Tensor& y, const Tensor& x);                   // y <- x; also between floating types
void scale(const Tensor& y, Scalar a);                         // y <- a y
void scaled_copy(const Tensor& y, Scalar a, const Tensor& x);  // y <- a x
void axpy(const Tensor& y, Scalar a, const Tensor& x);         // y <- y + a x; also of mixed types
void lerp(const Tensor& y, const Tensor& x, Scalar t);         // y <- y + t (x - y); t = 0 keeps every bit
double dot(const Tensor& x, const Tensor& y);  // in double; the order is fixed for a given thread count
double norm(const Tensor& x);                  // sqrt(dot(x, x))
bool all_finite(const Tensor& x);

// One pass of SGD (algorithms.md, "Local optimizer"), elements [0, decayed) with decay, the rest without:
//   d = g + decay * at;  v <- mu v + d;  x <- x - lr * (nesterov ? d + mu v : v)
// `at` is the point where g was taken, usually x itself. With mu = 0, v may be empty. `on` is a flag in the
// device's memory (engine/vectors/loss_scale.h) or null; if it is 0, x and v stay as they are. With segments,
// each takes its own part of lr and of decay, and `decayed` is not read.
struct SgdArgs {
  Tensor x, v, g, at;
  Scalar lr = 0.f, mu = 0.f, decay = 0.f;
  int64_t decayed = 0;
  bool nesterov = false;
  const float* on = nullptr;
  const Segments* segments = nullptr;
};
void sgd_update(const SgdArgs&);

}  // namespace skein
