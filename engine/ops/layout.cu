// Ops that move elements and compute nothing: reshape, transpose, pad, concat, cast; and bytes to pixels.
#include <algorithm>

#include "engine/loops/copy_past_caches.h"
#include "engine/loops/launch.h"
#include "engine/ops.h"
#include "engine/ops/walk.h"
#include "engine/past_caches.h"
#include "engine/tape.h"
#include "engine/vectors/constant.h"
#include "engine/vectors/vec.h"

namespace skein {
namespace {

template <class T>
struct MoveRow {
  T* to;
  const T* from;
  int64_t to_step, from_step;
  bool add;
  HD void operator()(int64_t c) const {
    T& y = to[c * to_step];
    const T x = from[c * from_step];
    y = add ? T(float(y) + float(x)) : x;
  }
};
template <class T>
struct DenseRow {
  T* to;
  const T* from;
  bool add;
  HD void operator()(int64_t c) const { to[c] = add ? T(float(to[c]) + float(from[c])) : from[c]; }
};
template <class T>
struct Move {
  Walk<2> walk;
  T* to;
  const T* from;
  bool add;
  HD MoveRow<T> row(int64_t r) const {
    return {to + walk.at(0, r), from + walk.at(1, r), walk.step(0), walk.step(1), add};
  }
};
template <class T>
struct MoveDense {
  Walk<2> walk;
  T* to;
  const T* from;
  bool add;
  HD DenseRow<T> row(int64_t r) const { return {to + walk.at(0, r), from + walk.at(1, r), add}; }
};

// A strided window of a tensor: where element 0 lies, and by how much each axis steps.
struct Window {
  const Tensor& tensor;
  int64_t at;
  Strides by;
};

// to <- from (+ to, if add), both walked over `shape`.
void move(const Shape& shape, const Window& to, const Window& from, bool add) {
  const Walk<2> walk(shape, {to.by, from.by});
  visit_float(to.tensor.dtype(), [&](auto t) {
    using T = decltype(t);
    T* y = to.tensor.data<T>() + to.at;
    const T* x = from.tensor.data<T>() + from.at;
    const Device d = to.tensor.device();
    if (walk.step(0) == 1 && walk.step(1) == 1)
      for_each_row(d, walk.rows, walk.cols, MoveDense<T>{walk, y, x, add});
    else
      for_each_row(d, walk.rows, walk.cols, Move<T>{walk, y, x, add});
  });
}

Window all_of(const Tensor& t) { return {t, 0, dense_strides(t.shape())}; }

// Runs of elements that have the same factors: a pixel, or several for a processor's vectors.
template <class T>
struct Normalize {
  T* __restrict__ y;
  const uint8_t* __restrict__ x;
  const float* __restrict__ scale, * __restrict__ shift;
  int64_t run, size;
  HD void operator()(int64_t r) const {
    const int64_t from = r * run, n = run < size - from ? run : size - from;
    for (int64_t i = 0; i < n; ++i) y[from + i] = T(float(x[from + i]) * scale[i] + shift[i]);
  }
};

// On the host, for runs that are whole lines of the caches.
template <class T>
void normalize_past_caches(const Normalize<T>& f) {
  const int64_t runs = f.size / f.run;
  in_shares(runs, true, [&](int64_t from, int64_t to) {
    std::vector<T> made(size_t(f.run));
    for (int64_t r = from; r < to; ++r) {
      const Normalize<T> one{made.data(), f.x + r * f.run, f.scale, f.shift, f.run, f.run};
      one(0);
      put_lines(f.y + r * f.run, made.data(), made.size() * sizeof(T) / kCacheLine);
    }
    fence_lines();
  });
  if (f.size % f.run) f(runs);
}

}  // namespace

Tensor reshape(const Tensor& x, Shape shape) {
  int64_t known = 1;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] >= 0) {
      known *= shape[i];
      continue;
    }
    CHECK(open < 0, "one extent may be -1, not two:", shape);
    open = i;
  }
  if (open >= 0) {
    CHECK(known > 0 && x.size() % known == 0, "cannot reshape", x.shape(), "to", shape);
    shape[open] = x.size() / known;
  }
  CHECK(shape.volume() == x.size(), "cannot reshape", x.shape(), "to", shape);
  const Tensor y = x.view(shape);
  return record({.op = "reshape", .in = {x}, .out = y},
                [in = Value(x)](const Tensor& dy, Pull& pull) { pull.give(in, dy.view(in.shape)); });
}

Tensor transpose(const Tensor& x, const std::vector<int>& axes) {
  CHECK(int(axes.size()) == x.rank(), "as many axes as", x.shape(), "has, not", axes.size());
  const Strides own = dense_strides(x.shape());
  Shape shape = x.shape();
  Strides by{};
  unsigned seen = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const int a = axes[size_t(i)];
    CHECK(a >= 0 && a < x.rank() && !(seen >> a & 1), "each axis of", x.shape(), "once; found", a, "at", i);
    seen |= 1u << a;
    shape[i] = x.shape()[a];
    by[size_t(i)] = own[size_t(a)];
  }
  Tensor y(shape, x.dtype(), x.device());
  move(shape, all_of(y), {x, 0, by}, false);
  const auto settings = [&axes] { return Settings{{"axes", {axes.begin(), axes.end()}}}; };
  const Operation op{.op = "transpose", .in = {x}, .out = y, .settings = settings};
  return record(op, [in = Value(x), by](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) { move(dy.shape(), {dx, 0, by}, all_of(dy), beta != 0); });
  });
}

Tensor pad(const Tensor& x, const std::vector<std::array<int, 2>>& by) {
  CHECK(int(by.size()) == x.rank(), "a pair for each axis of", x.shape(), "not", by.size());
  Shape shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) {
    CHECK(by[size_t(i)][0] >= 0 && by[size_t(i)][1] >= 0, "padding cannot be negative, axis", i);
    shape[i] += by[size_t(i)][0] + by[size_t(i)][1];
  }
  const Strides strides = dense_strides(shape);
  int64_t at = 0;
  for (int i = 0; i < x.rank(); ++i) at += by[size_t(i)][0] * strides[size_t(i)];
  Tensor y = Tensor::zeros(shape, x.dtype(), x.device());
  move(x.shape(), {y, at, strides}, all_of(x), false);
  const auto settings = [&by] {
    Settings s;
    for (const auto& [before, after] : by) s["before"].push_back(before), s["after"].push_back(after);
    return s;
  };
  const Operation op{.op = "pad", .in = {x}, .out = y, .settings = settings};
  return record(op, [in = Value(x), at, strides](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) { move(in.shape, all_of(dx), {dy, at, strides}, beta != 0); });
  });
}

Tensor concat(const std::vector<Tensor>& parts, int axis) {
  CHECK(!parts.empty(), "concat of nothing");
  const Tensor& first = parts[0];
  const int a = axis < 0 ? axis + first.rank() : axis;
  CHECK(a >= 0 && a < first.rank(), "axis", axis, "of", first.shape());
  Shape shape = first.shape();
  shape[a] = 0;
  for (const Tensor& p : parts) {
    Shape same = p.shape();
    CHECK(p.rank() == first.rank() && p.dtype() == first.dtype(), "cannot concat", first.shape(),
          first.dtype(), "and", p.shape(), p.dtype());
    shape[a] += p.shape()[a];
    same[a] = first.shape()[a];
    CHECK(same == first.shape(), "cannot concat", first.shape(), "and", p.shape(), "along axis", a);
  }
  Tensor y(shape, first.dtype(), first.device());
  const Strides strides = dense_strides(shape);
  int64_t at = 0;
  for (const Tensor& p : parts) {
    move(p.shape(), {y, at, strides}, all_of(p), false);
    at += p.shape()[a] * strides[size_t(a)];
  }
  const std::vector<Value> in(parts.begin(), parts.end());
  return record({.op = "concat", .in = parts, .out = y}, [in, strides, a](const Tensor& dy, Pull& pull) {
    int64_t begin = 0;
    for (const Value& p : in) {
      pull(p, [&](const Tensor& dx, float beta) {
        move(p.shape, all_of(dx), {dy, begin, strides}, beta != 0);
      });
      begin += p.shape[a] * strides[size_t(a)];
    }
  });
}

Tensor cast(const Tensor& x, DType t) {
  if (x.dtype() == t) return x;
  Tensor y(x.shape(), t, x.device());
  copy(y, x);
  return record({.op = "cast", .in = {x}, .out = y}, [in = Value(x)](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) { beta == 0 ? copy(dx, dy) : axpy(dx, 1.f, dy); });
  });
}

Tensor normalize_image(const Tensor& u8, const std::vector<float>& mean, const std::vector<float>& std,
                       DType t) {
  const int64_t channels = u8.dim(-1);
  CHECK(u8.dtype() == kU8 && u8.rank() == 4, "an image batch of bytes [N,H,W,C], not", u8.shape(),
        u8.dtype());
  CHECK(int64_t(mean.size()) == channels && int64_t(std.size()) == channels,
        "one mean and deviation a channel:", u8.shape(), mean.size(), std.size());
  constexpr int64_t kPixels = 64;  // of a run on the host
  const int64_t run = channels * (u8.device().is_host() ? kPixels : 1);
  std::vector<float> scale, shift;
  for (size_t i = 0; i < size_t(run); ++i) {
    const size_t c = i % mean.size();
    scale.push_back(1 / (255 * std[c]));
    shift.push_back(-mean[c] / std[c]);
  }
  const Tensor by = constant(scale, u8.device()), plus = constant(shift, u8.device());
  Tensor y(u8.shape(), t, u8.device());
  visit_float(t, [&](auto v) {
    using T = decltype(v);
    const Normalize<T> f{y.data<T>(), u8.data<uint8_t>(), by.data<float>(), plus.data<float>(),
                         run,         u8.size()};
    if (!u8.device().is_host() || !past_caches(y))
      return for_each(u8.device(), run > 0 ? (u8.size() + run - 1) / run : 0, f);
    if (keeps_calls()) return keep([f] { normalize_past_caches(f); });
    normalize_past_caches(f);
  });
  return y;
}

}  // namespace skein
