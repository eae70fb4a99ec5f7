// Log-softmax, cross entropy and top-k accuracy, with a team for each row.
#include <cmath>

#include "engine/loops/launch.h"
#include "engine/ops.h"
#include "engine/tape.h"
#include "engine/vectors/mix.h"
#include "engine/vectors/vec.h"

namespace skein {
namespace {

// log(sum exp(x)) of one row of n, with the largest value subtracted first.
template <class T, class Team>
HD float log_sum_exp(const T* x, int64_t n, Team team) {
  float top = -INFINITY;
  for (int64_t c = team.lane(); c < n; c += Team::kLanes) top = fmaxf(top, float(x[c]));
  top = team.max(top);
  float s = 0;
  for (int64_t c = team.lane(); c < n; c += Team::kLanes) s += expf(float(x[c]) - top);
  return top + logf(team.sum(s));
}

template <class T>
struct LogSoftmax {
  T* y;
  const T* x;
  int64_t n;
  template <class Team>
  HD void operator()(int64_t r, Team team) const {
    const float lse = log_sum_exp(x + r * n, n, team);
    for (int64_t c = team.lane(); c < n; c += Team::kLanes) y[r * n + c] = T(float(x[r * n + c]) - lse);
  }
};
// dx = dy - softmax(x) * sum(dy)
template <class T>
struct LogSoftmaxBack {
  T* dx;
  const T *dy, *y;
  int64_t n;
  bool add;
  template <class Team>
  HD void operator()(int64_t r, Team team) const {
    float s = 0;
    for (int64_t c = team.lane(); c < n; c += Team::kLanes) s += float(dy[r * n + c]);
    s = team.sum(s);
    for (int64_t c = team.lane(); c < n; c += Team::kLanes) {
      const int64_t i = r * n + c;
      const float d = float(dy[i]) - expf(float(y[i])) * s;
      dx[i] = T(add ? float(dx[i]) + d : d);
    }
  }
};

// The loss of each row, 0 for a row without a label. Only the host can refuse a label out of range; on a
// device the loss becomes NaN.
template <class T>
struct RowLoss {
  float *loss, *lse;
  const T* x;
  const int32_t *label, *other;  // other: the partner's label of blended rows; else null
  int64_t n;
  float smoothing;
  Scalar share;
  template <class Team>
  HD void operator()(int64_t r, Team team) const {
    const T* row = x + r * n;
    const float z = log_sum_exp(row, n, team);
    float s = 0;  // without smoothing not even read: of a class that is impossible it would be infinite
    if (smoothing > 0) {
      for (int64_t c = team.lane(); c < n; c += Team::kLanes) s += z - float(row[c]);
      s = team.sum(s);
    }
    if (team.lane() != 0) return;
    const int32_t target = label[r];
    lse[r] = z;
    float own = target >= 0 && target < n ? z - float(row[target]) : target < 0 ? 0.f : NAN;
    if (other)
      own = share.get() * own +
            (1 - share.get()) * (other[r] >= 0 && other[r] < n ? z - float(row[other[r]]) : NAN);
    loss[r] = target < 0 ? 0.f : (1 - smoothing) * own + smoothing / float(n) * s;
  }
};
// out <- {sum of v over the rows with a label, `rows` if given, else the number of such rows}
struct CountedSum {
  float* out;
  const float* v;
  const int32_t* label;
  int64_t m;
  float rows;  // 0: not given
  template <class Team>
  HD void operator()(int64_t, Team team) const {
    float s = 0, count = 0;
    for (int64_t r = team.lane(); r < m; r += Team::kLanes)
      if (label[r] >= 0) s += v[r], count += 1;
    s = team.sum(s), count = team.sum(count);
    if (team.lane() == 0) out[0] = s, out[1] = rows > 0 ? rows : count;
  }
};
struct Quotient {
  float* y;
  const float* sums;
  HD void operator()(int64_t) const { y[0] = sums[1] > 0 ? sums[0] / sums[1] : 0.f; }
};
template <class T>
struct CrossEntropyBack {
  T* dx;
  const T* x;
  const float *dy, *lse, *sums;
  const int32_t *label, *other;
  int64_t n;
  float smoothing;
  Scalar share;  // the label's weight; 1 if there is no other
  bool add;
  template <class Team>
  HD void operator()(int64_t r, Team team) const {
    const int32_t target = label[r];
    const float scale = target < 0 ? 0.f : dy[0] / sums[1], weight = share.get();
    for (int64_t c = team.lane(); c < n; c += Team::kLanes) {
      const int64_t i = r * n + c;
      float sure = c == target ? weight : 0.f;
      if (other && c == other[r]) sure += 1 - weight;
      const float q = smoothing / float(n) + sure * (1 - smoothing);
      const float d = target < 0 ? 0.f : scale * (expf(float(x[i]) - lse[r]) - q);
      dx[i] = T(add ? float(dx[i]) + d : d);
    }
  }
};

template <class T>
struct Hit {
  float* hit;
  const T* x;
  const int32_t* label;
  int64_t n;
  int k;
  template <class Team>
  HD void operator()(int64_t r, Team team) const {
    const int32_t target = label[r];
    if (target < 0 || target >= n) {
      if (team.lane() == 0) hit[r] = 0;
      return;
    }
    const float own = float(x[r * n + target]);
    float before = 0;  // written with "not <=" so that a NaN on either side counts against the label
    for (int64_t c = team.lane(); c < n; c += Team::kLanes) {
      const float v = float(x[r * n + c]);
      if (c != target && (!(v <= own) || (v == own && c < target))) before += 1;
    }
    before = team.sum(before);
    if (team.lane() == 0) hit[r] = own == own && before < float(k) ? 1.f : 0.f;
  }
};

void check_values(const int32_t* label, int64_t rows, int64_t classes) {
  if (keeps_calls()) return keep([=] { check_values(label, rows, classes); });
  for (int64_t r = 0; r < rows; ++r)
    CHECK(label[r] < classes, "label", label[r], "of row", r, "but there are", classes, "classes");
}

void check_labels(const Tensor& logits, const Tensor& labels) {
  CHECK(logits.rank() == 2 && labels.rank() == 1 && logits.dim(0) == labels.dim(0) && logits.dim(1) > 0,
        "logits", logits.shape(), "labels", labels.shape());
  CHECK(labels.dtype() == kI32 && labels.device() == logits.device(), labels.dtype(), labels.device());
  if (labels.device().is_cuda()) return;
  check_values(labels.data<int32_t>(), labels.size(), logits.dim(1));
}

Tensor counted_sum(const Tensor& v, const Tensor& labels, float rows = 0) {
  Tensor sums({2}, kF32, v.device());
  for_each_team(v.device(), 1, v.size(),
                CountedSum{sums.data<float>(), v.data<float>(), labels.data<int32_t>(), v.size(), rows});
  return sums;
}

}  // namespace

Tensor log_softmax(const Tensor& x) {
  CHECK(x.rank() > 0 && x.dim(-1) > 0, x.shape());
  Tensor y(x.shape(), x.dtype(), x.device());
  const int64_t n = x.dim(-1), m = x.size() / n;
  visit_float(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each_team(x.device(), m, x.size(), LogSoftmax<T>{y.data<T>(), x.data<T>(), n});
  });
  const Operation op{.op = "log_softmax", .in = {x}, .out = y};
  return record(op, [in = Value(x), y, n, m](const Tensor& dy, Pull& pull) {
    pull(in, [&](const Tensor& dx, float beta) {
      visit_float(y.dtype(), [&](auto t) {
        using T = decltype(t);
        for_each_team(y.device(), m, y.size(),
                      LogSoftmaxBack<T>{dx.data<T>(), dy.data<T>(), y.data<T>(), n, beta != 0});
      });
    });
  });
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, float smoothing) {
  return cross_entropy(logits, Targets{labels, {}, 1, 0}, smoothing);
}

Tensor cross_entropy(const Tensor& logits, const Targets& to, float smoothing) {
  const Tensor labels = to.labels, others = to.other;
  check_labels(logits, labels);
  if (others) check_labels(logits, others);
  CHECK(to.share >= 0 && to.share <= 1 && to.rows >= 0, to.share, to.rows);
  const auto other_of = [](const Tensor& t) { return t ? t.data<int32_t>() : nullptr; };
  const Scalar share = !others ? Scalar(1.f) : to.share_slot ? Scalar::at(to.share_slot) : Scalar(to.share);
  CHECK(smoothing >= 0 && smoothing <= 1, "label smoothing", smoothing);
  const int64_t m = logits.dim(0), n = logits.dim(1);
  const Device d = logits.device();
  Tensor loss({m}, kF32, d), lse({m}, kF32, d), y({1}, kF32, d);
  visit_float(logits.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each_team(d, m, m * n,
                  RowLoss<T>{loss.data<float>(), lse.data<float>(), logits.data<T>(), labels.data<int32_t>(),
                             other_of(others), n, smoothing, share});
  });
  const Tensor sums = counted_sum(loss, labels, float(to.rows));
  for_each(d, 1, Quotient{y.data<float>(), sums.data<float>()});
  return record({.op = "cross_entropy", .in = {logits}, .out = y}, [=](const Tensor& dy, Pull& pull) {
    pull(logits, [&](const Tensor& dx, float beta) {
      visit_float(logits.dtype(), [&](auto t) {
        using T = decltype(t);
        for_each_team(d, m, m * n,
                      CrossEntropyBack<T>{dx.data<T>(), logits.data<T>(), dy.data<float>(), lse.data<float>(),
                                          sums.data<float>(), labels.data<int32_t>(), other_of(others), n,
                                          smoothing, share, beta != 0});
      });
    });
  });
}

Tensor top_k_hits(const Tensor& logits, const Tensor& labels, int k) {
  check_labels(logits, labels);
  CHECK(k > 0, "top", k);
  const int64_t m = logits.dim(0), n = logits.dim(1);
  Tensor hit({m}, kF32, logits.device());
  visit_float(logits.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each_team(logits.device(), m, m * n,
                  Hit<T>{hit.data<float>(), logits.data<T>(), labels.data<int32_t>(), n, k});
  });
  return counted_sum(hit, labels);
}

}  // namespace skein
