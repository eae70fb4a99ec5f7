// Makes a loop, a kernel, gradients and a tape entry from each row of pointwise.def; binary ops broadcast.
#include <cmath>
#include <string_view>

#include "engine/loops/launch.h"
#include "engine/ops.h"
#include "engine/ops/reduce.h"
#include "engine/ops/walk.h"
#include "engine/tape.h"
#include "engine/vectors/vec.h"

namespace skein {
namespace {

HD float sigm(float x) { return 1.f / (1.f + expf(-x)); }

// Whether a derivative of the table may read what has this name. A letter of a function's name counts, too.
constexpr bool reads(std::string_view derivative, char name) {
  return derivative.find(name) != std::string_view::npos;
}

// The rows as types. Most of them leave some parameters unused.
namespace row {
#define UNARY(name, onnx, fx, dfx)                                                         \
  struct name {                                                                            \
    static constexpr bool kReadsX = reads(#dfx, 'x'), kReadsY = reads(#dfx, 'y');          \
    static constexpr const char* kName = #name;                                            \
    HD static float f([[maybe_unused]] float x) { return fx; }                             \
    HD static float df([[maybe_unused]] float x, [[maybe_unused]] float y) { return dfx; } \
  };
#define BINARY(name, onnx, fab, dfa, dfb)                                                                 \
  struct name {                                                                                           \
    static constexpr bool kUnitA = std::string_view(#dfa) == "1", kUnitB = std::string_view(#dfb) == "1"; \
    static constexpr bool kReadsA = reads(#dfa #dfb, 'a'), kReadsB = reads(#dfa #dfb, 'b'),               \
                          kReadsY = reads(#dfa #dfb, 'y');                                                \
    static constexpr const char* kName = #name;                                                           \
    HD static float f([[maybe_unused]] float a, [[maybe_unused]] float b) { return fab; }                 \
    HD static float da([[maybe_unused]] float a, [[maybe_unused]] float b, [[maybe_unused]] float y) {    \
      return dfa;                                                                                         \
    }                                                                                                     \
    HD static float db([[maybe_unused]] float a, [[maybe_unused]] float b, [[maybe_unused]] float y) {    \
      return dfb;                                                                                         \
    }                                                                                                     \
  };
#include "engine/ops/pointwise.def"
#undef UNARY
#undef BINARY
}  // namespace row

template <class Op, class T>
struct Unary {
  T* y;
  const T* x;
  HD void operator()(int64_t i) const { y[i] = T(Op::f(float(x[i]))); }
};
// dx is read only if it holds a contribution already.
template <class Op, class T>
struct UnaryBack {
  T* dx;
  const T *dy, *x, *y;
  bool add;
  HD void operator()(int64_t i) const {
    const float d = float(dy[i]) * Op::df(float(x[i]), float(y[i]));
    dx[i] = T(add ? float(dx[i]) + d : d);
  }
};

// In place of what a derivative does not read, its loop loads dy, which is as large and there anyway.
const Tensor& kept_or(const Tensor& kept, const Tensor& dy) { return kept ? kept : dy; }

template <class Op>
Tensor unary(const Tensor& x) {
  Tensor y(x.shape(), x.dtype(), x.device());
  visit_float(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each(x.device(), x.size(), Unary<Op, T>{y.data<T>(), x.data<T>()});
  });
  const Tensor kept_x = Op::kReadsX ? x : Tensor(), kept_y = Op::kReadsY ? y : Tensor();
  const Operation op{.op = Op::kName, .in = {x}, .out = y};
  return record(op, [in = Value(x), kept_x, kept_y](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) {
      visit_float(dx.dtype(), [&](auto t) {
        using T = decltype(t);
        for_each(dx.device(), dx.size(),
                 UnaryBack<Op, T>{dx.data<T>(), dy.data<T>(), kept_or(kept_x, dy).data<T>(),
                                  kept_or(kept_y, dy).data<T>(), beta != 0});
      });
    });
  });
}

// One row of a binary operation: an operand steps by 1 or stays (kA, kB = 0), known to the compiler, because
// an unknown step turns every load into a gather.
template <class Op, class T, int kA, int kB>
struct BinaryRow {
  T* y;
  const T *a, *b;
  HD void operator()(int64_t c) const { y[c] = T(Op::f(float(a[kA * c]), float(b[kB * c]))); }
};
template <class Op, class T, int kA, int kB>
struct Binary {
  Walk<2> walk;
  T* y;
  const T *a, *b;
  HD BinaryRow<Op, T, kA, kB> row(int64_t r) const {
    return {y + r * walk.cols, a + walk.at(0, r), b + walk.at(1, r)};
  }
};
// The gradient of operand a (kWrtA) or b at every element of the result.
template <class Op, bool kWrtA, class T, int kA, int kB>
struct BinaryBackRow {
  T* d;
  const T *dy, *y, *a, *b;
  bool add;
  HD void operator()(int64_t c) const {
    const float p = float(a[kA * c]), q = float(b[kB * c]), r = float(y[c]);
    const float g = float(dy[c]) * (kWrtA ? Op::da(p, q, r) : Op::db(p, q, r));
    d[c] = T(add ? float(d[c]) + g : g);
  }
};
template <class Op, bool kWrtA, class T, int kA, int kB>
struct BinaryBack {
  Walk<2> walk;
  T* d;
  const T *dy, *y, *a, *b;
  bool add;
  HD BinaryBackRow<Op, kWrtA, T, kA, kB> row(int64_t r) const {
    const int64_t at = r * walk.cols;
    return {d + at, dy + at, y + at, a + walk.at(0, r), b + walk.at(1, r), add};
  }
};

template <int k>
struct Step {
  static constexpr int value = k;
};

// Calls f(T{}, Step<kA>{}, Step<kB>{}) for the operands' type and innermost steps.
template <class F>
void visit_binary(DType type, const Walk<2>& walk, F&& f) {
  visit_float(type, [&](auto t) {
    if (walk.step(0) == 0)
      f(t, Step<0>{}, Step<1>{});
    else if (walk.step(1) == 0)
      f(t, Step<1>{}, Step<0>{});
    else
      f(t, Step<1>{}, Step<1>{});
  });
}

struct Saved {
  Value a, b;
  Walk<2> walk;
  Tensor kept_a, kept_b, kept_y;  // empty if neither derivative reads it
};

// d <- dy * (the op's derivative in a or b) + (add ? d : 0), at every element of the result.
template <class Op, bool kWrtA>
void derive(const Tensor& d, const Tensor& dy, const Saved& s, bool add) {
  visit_binary(dy.dtype(), s.walk, [&](auto t, auto step_a, auto step_b) {
    using T = decltype(t);
    for_each_row(d.device(), s.walk.rows, s.walk.cols,
                 BinaryBack<Op, kWrtA, T, step_a.value, step_b.value>{
                     s.walk, d.data<T>(), dy.data<T>(), kept_or(s.kept_y, dy).data<T>(),
                     kept_or(s.kept_a, dy).data<T>(), kept_or(s.kept_b, dy).data<T>(), add});
  });
}

// An operand that was broadcast gets the sum over its repetitions; a derivative of 1 needs no
// pass of its own.
template <class Op, bool kWrtA>
void pull_operand(Pull& pull, const Tensor& dy, const Saved& s) {
  constexpr bool kUnit = kWrtA ? Op::kUnitA : Op::kUnitB;
  pull(kWrtA ? s.a : s.b, [&](const Tensor& d, float beta) {
    const bool repeated = d.size() != dy.size();
    if constexpr (kUnit) {
      if (repeated) return sum_to_shape(d, dy, beta);
      beta == 0 ? copy(d, dy) : axpy(d, 1.f, dy);
    } else {
      if (!repeated) return derive<Op, kWrtA>(d, dy, s, beta != 0);
      const Tensor full(dy.shape(), d.dtype(), d.device());
      derive<Op, kWrtA>(full, dy, s, false);
      sum_to_shape(d, full, beta);
    }
  });
}

template <class Op>
Tensor binary(const Tensor& a, const Tensor& b) {
  CHECK(a.device() == b.device(), Op::kName, "of tensors on", a.device(), "and", b.device());
  // computed in f32 and rounded once: a kernel for each pair of types would be too many
  if (a.dtype() != b.dtype()) {
    CHECK(a.dtype() == kF32 || b.dtype() == kF32, "operands of types", a.dtype(), "and", b.dtype(),
          "do not mix; cast() one of them");
    return cast(binary<Op>(cast(a, kF32), cast(b, kF32)), a.dtype());
  }
  const Shape shape = broadcast(Op::kName, a.shape(), b.shape());
  const Walk<2> walk(shape, {broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)});
  Tensor y(shape, a.dtype(), a.device());
  visit_binary(y.dtype(), walk, [&](auto t, auto step_a, auto step_b) {
    using T = decltype(t);
    for_each_row(y.device(), walk.rows, walk.cols,
                 Binary<Op, T, step_a.value, step_b.value>{walk, y.data<T>(), a.data<T>(), b.data<T>()});
  });
  const auto kept = [](bool reads, const Tensor& t) { return reads ? t : Tensor(); };
  const Saved saved{a, b, walk, kept(Op::kReadsA, a), kept(Op::kReadsB, b), kept(Op::kReadsY, y)};
  const Operation op{.op = Op::kName, .in = {a, b}, .out = y};
  return record(op, [s = saved](const Tensor& dy, Pull& pull) {
    const auto takes_dy = [&](const Value& v) {
      return v.shape == dy.shape() && v.dtype == dy.dtype() && pull.wants(v);
    };
    const bool give_a = Op::kUnitA && takes_dy(s.a), give_b = !give_a && Op::kUnitB && takes_dy(s.b);
    if (!give_a) pull_operand<Op, true>(pull, dy, s);
    if (!give_b) pull_operand<Op, false>(pull, dy, s);
    if (give_a || give_b) pull.give(give_a ? s.a : s.b, dy);  // last, because dy is not read any more
  });
}

}  // namespace

#define UNARY(name, onnx, f, df) \
  Tensor name(const Tensor& x) { return unary<row::name>(x); }
#define BINARY(name, onnx, f, da, db) \
  Tensor name(const Tensor& a, const Tensor& b) { return binary<row::name>(a, b); }
#include "engine/ops/pointwise.def"
#undef UNARY
#undef BINARY

}  // namespace skein
