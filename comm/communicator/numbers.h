// Arithmetic on a vector that is averaged: f32 numbers, or doubles whose bits are an i64 tensor.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace skein::comm {

// All tensors lie in the host's memory and hold f32 or i64. An i64 tensor holds the bits of doubles, and
// travels neither rounded nor scaled. Two tensors of one call have the same type and size.
inline double* doubles(const Tensor& x) { return reinterpret_cast<double*>(x.data<int64_t>()); }
inline bool holds_doubles(const Tensor& x) { return x.dtype() == kI64; }
Tensor bits_of(const std::vector<double>&);
std::vector<double> numbers_of(const Tensor& bits);
// Cuts numbers into rows of equal length.
std::vector<std::vector<double>> rows_of(const std::vector<double>& all, size_t rows);

// Calls f(float*) or f(double*) with the numbers of x.
template <class F>
decltype(auto) visit_numbers(const Tensor& x, F&& f) {
  if (holds_doubles(x)) return f(doubles(x));
  return f(x.data<float>());
}

void multiply(const Tensor& x, double a);                     // x <- a x
void multiplied(const Tensor& y, double a, const Tensor& x);  // y <- a x
void add_to(const Tensor& y, const Tensor& x);                // y <- y + x
void average_into(const Tensor& y, const Tensor& x);          // y <- (y + x) / 2
void absolute(const Tensor& y, const Tensor& x);              // y <- |x|
double sum_of(const Tensor& x);
double largest_of(const Tensor& x);  // in absolute value
// Smallest number e with 1 + e > 1, and the type's name: "float32" or "float64".
std::pair<double, const char*> precision_of(const Tensor& x);

// How far x / w is from the mean.
struct Distance {
  double worst = 0;     // the largest of any number
  double relative = 0;  // the largest share of the number's size; 0 without sizes
  double length = 0;    // the root of the sum of squares
};
Distance distance(const Tensor& x, double w, const Tensor& mean, const Tensor& size);

}  // namespace skein::comm
