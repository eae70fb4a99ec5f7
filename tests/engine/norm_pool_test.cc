// Batch norm and pooling of the backend against plain references in double, in both types.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <random>

#include "engine/backend.h"

namespace skein {
namespace {

using Values = std::vector<double>;

Tensor random(const Shape& s, DType t, unsigned seed, float offset = 0, float spread = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(offset, spread);
  Tensor x(s, t);
  visit_float(t, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = T(normal(generator));
  });
  return x;
}

Values values(const Tensor& t) {
  Values v;
  if (!t) return v;
  visit_float(t.dtype(), [&](auto zero) {
    for (int64_t i = 0; i < t.size(); ++i) v.push_back(double(float(t.data<decltype(zero)>()[i])));
  });
  return v;
}

double error(const Tensor& t, const Values& want) {
  const Values got = values(t);
  EXPECT_EQ(got.size(), want.size());
  double square = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    square += want[i] * want[i];
    if (!(std::abs(got[i] - want[i]) <= worst)) worst = std::abs(got[i] - want[i]);
  }
  return worst / std::max(1e-3, std::sqrt(square / double(want.size())));
}

double bound(DType t) { return t == kF32 ? 3e-5 : t == kF16 ? 5e-3 : 4e-2; }

// ---- batch norm ------------------------------------------------------------------------------------

BatchNormArgs make_norm(const Shape& s, DType t, bool training, bool relu, bool residual,
                        float offset = 0.5f) {
  const int64_t c = s[s.rank() - 1];
  BatchNormArgs a;
  a.x = random(s, t, 1, offset), a.y = Tensor(s, t), a.mean = Tensor({c}), a.rstd = Tensor({c});
  a.gamma = random({c}, kF32, 2, 1), a.shift = random({c}, kF32, 3);
  a.running_mean = random({c}, kF32, 4), a.running_var = random({c}, kF32, 5, 3, 0.3f);
  a.training = training, a.relu = relu;
  if (residual) a.residual = random(s, t, 6);
  a.dy = random(s, t, 7);
  return a;
}

struct Reference {
  Values mean, var, y, running_mean, running_var, dx, dresidual, dgamma, dshift;
};

// The mask is taken from `a.y`, as in the contract; for gradients call this after the
// forward pass under test.
Reference reference(const BatchNormArgs& a, const Values& running_mean, const Values& running_var) {
  const Values x = values(a.x), r = values(a.residual), g = values(a.gamma), b = values(a.shift),
               dy = values(a.dy);
  const Values y = values(a.y);
  const size_t C = g.size(), M = x.size() / C;
  Reference f{running_mean, running_var, x, running_mean, running_var, dy, dy, Values(C), Values(C)};
  for (size_t c = 0; c < C; ++c) {
    if (a.training) {
      double s = 0, q = 0;
      for (size_t i = c; i < x.size(); i += C) s += x[i];
      for (size_t i = c; i < x.size(); i += C) q += (x[i] - s / double(M)) * (x[i] - s / double(M));
      f.mean[c] = s / double(M), f.var[c] = q / double(M);
      const double unbiased = M > 1 ? q / double(M - 1) : f.var[c];
      f.running_mean[c] += a.momentum * (f.mean[c] - f.running_mean[c]);
      f.running_var[c] += a.momentum * (unbiased - f.running_var[c]);
    }
    const double rstd = 1 / std::sqrt(f.var[c] + a.epsilon);
    for (size_t i = c; i < x.size(); i += C) {
      const double v = (x[i] - f.mean[c]) * rstd * g[c] + b[c] + (r.empty() ? 0 : r[i]);
      f.y[i] = a.relu ? std::max(0., v) : v;
      f.dresidual[i] = a.relu && !(y[i] > 0) ? 0 : dy[i];
      f.dshift[c] += f.dresidual[i];
      f.dgamma[c] += f.dresidual[i] * (x[i] - f.mean[c]) * rstd;
    }
    for (size_t i = c; i < x.size(); i += C) {
      const double h = (x[i] - f.mean[c]) * rstd;
      const double away = a.training ? (f.dshift[c] + h * f.dgamma[c]) / double(M) : 0;
      f.dx[i] = g[c] * rstd * (f.dresidual[i] - away);
    }
  }
  return f;
}

void expect_forward(BatchNormArgs a, double limit, const std::string& what) {
  const Values rm = values(a.running_mean), rv = values(a.running_var);
  batch_norm_forward(kCpu, a);
  const Reference f = reference(a, rm, rv);
  EXPECT_LT(error(a.y, f.y), limit) << what;
  EXPECT_LT(error(a.running_mean, f.running_mean), 3e-6) << what;
  EXPECT_LT(error(a.running_var, f.running_var), 3e-6) << what;
  if (!a.training) return;
  EXPECT_LT(error(a.mean, f.mean), 3e-6) << what;
}

Values plus(Values v, const Values& w, double beta) {
  for (size_t i = 0; i < v.size(); ++i) v[i] += beta == 0 ? 0 : beta * w[i];
  return v;
}

void expect_backward(BatchNormArgs a, float beta, bool in_place, const std::string& what) {
  const Values rm = values(a.running_mean), rv = values(a.running_var);
  const int64_t c = a.gamma.size();
  batch_norm_forward(kCpu, a);
  const Reference f = reference(a, rm, rv);
  if (!a.training) { ASSERT_EQ(values(a.running_mean), rm); }
  a.dx = random(a.x.shape(), a.x.dtype(), 8), a.dgamma = random({c}, kF32, 9),
  a.dshift = random({c}, kF32, 10);
  a.dresidual = in_place ? a.dy : random(a.x.shape(), a.x.dtype(), 11);
  a.dx_beta = a.dgamma_beta = a.dshift_beta = beta;
  a.dresidual_beta = in_place ? 0 : beta;
  const Values dx = values(a.dx), dr = values(a.dresidual), dg = values(a.dgamma), ds = values(a.dshift);
  batch_norm_backward(kCpu, a);
  EXPECT_LT(error(a.dx, plus(f.dx, dx, beta)), bound(a.x.dtype())) << what;
  EXPECT_LT(error(a.dresidual, plus(f.dresidual, dr, a.dresidual_beta)), bound(a.x.dtype())) << what;
  EXPECT_LT(error(a.dgamma, plus(f.dgamma, dg, beta)), 3e-5) << what;
  EXPECT_LT(error(a.dshift, plus(f.dshift, ds, beta)), 3e-5) << what;
}

const Shape kNormShapes[] = {{4, 5, 7, 3},    {2, 8, 8, 16},  {7, 1},        {33, 5},
                             {2, 14, 14, 64}, {3, 4, 4, 100}, {9, 9, 9, 130}};

TEST(BatchNorm, ForwardEqualsTheReferenceInEveryMode) {
  for (DType t : {kF32, kBF16, kF16})
    for (const Shape& s : kNormShapes)
      for (int bits = 0; bits < 8; ++bits)
        expect_forward(make_norm(s, t, bits & 1, bits & 2, bits & 4), bound(t),
                       text(t, ' ', s, " bits ", bits));
}

TEST(BatchNorm, BackwardEqualsTheReferenceInEveryMode) {
  for (DType t : {kF32, kBF16, kF16})
    for (const Shape& s : kNormShapes)
      for (int bits = 0; bits < 32; ++bits)
        expect_backward(make_norm(s, t, bits & 1, bits & 2, bits & 4), bits & 8 ? 1 : 0, bits & 16,
                        text(t, ' ', s, " bits ", bits));
}

TEST(BatchNorm, VarianceSurvivesAMeanAThousandTimesLarger) {
  BatchNormArgs a = make_norm({4096, 24}, kF32, true, false, false, 1000.f);
  expect_forward(a, 1e-4, "offset 1000");  // the mean itself is rounded to 24 bits
}

TEST(BatchNorm, RepeatsItselfBitForBitForOneNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    BatchNormArgs a = make_norm({8, 16, 16, 24}, kF32, true, true, false), b = a;
    b.y = Tensor(a.y.shape()), b.mean = Tensor({24}), b.rstd = Tensor({24});
    batch_norm_forward(kCpu, a);
    batch_norm_forward(kCpu, b);
    EXPECT_EQ(values(a.y), values(b.y));
    EXPECT_EQ(values(a.mean), values(b.mean));
  }
  omp_set_num_threads(before);
}

// ---- pooling ---------------------------------------------------------------------------------------

struct PoolCase {
  int64_t n, h, w, c;
  int size, stride, padding;
  bool ceil_mode;
};
const PoolCase kPoolCases[] = {{2, 8, 8, 16, 2, 2, 0, false},  {2, 9, 7, 5, 3, 2, 1, false},
                               {1, 6, 6, 3, 3, 2, 0, true},    {3, 5, 5, 1, 2, 2, 0, true},
                               {2, 7, 7, 70, 3, 1, 1, false},  {1, 11, 11, 64, 3, 2, 1, true},
                               {2, 4, 4, 130, 4, 4, 0, false}, {1, 7, 5, 8, 2, 3, 0, false}};

int64_t extent(int64_t n, const PoolCase& k) {
  const int64_t room = n + 2 * k.padding - k.size;
  const int64_t p = (k.ceil_mode ? (room + k.stride - 1) / k.stride : room / k.stride) + 1;
  return k.ceil_mode && (p - 1) * k.stride >= n + k.padding ? p - 1
                                                            : p;  // no window may begin beyond the input
}

PoolArgs make_pool(const PoolCase& k, DType t, bool average) {
  const Shape y{k.n, extent(k.h, k), extent(k.w, k), k.c};
  PoolArgs a{.x = random({k.n, k.h, k.w, k.c}, t, 1),
             .y = Tensor(y, t),
             .argmax = {},
             .dx = {},
             .dy = random(y, t, 2),
             .size = k.size,
             .stride = k.stride,
             .padding = k.padding,
             .ceil_mode = k.ceil_mode,
             .average = average};
  a.dx = random(a.x.shape(), t, 3);
  if (!average) a.argmax = Tensor(y, kU8);
  return a;
}

// Computes y and adds to dx from dy, in one pass over all windows.
void reference_pool(const PoolArgs& a, Values& y, Values& dx) {
  const Values x = values(a.x), dy = values(a.dy);
  const int64_t H = a.x.dim(1), W = a.x.dim(2), C = a.x.dim(3), P = a.y.dim(1), Q = a.y.dim(2);
  for (int64_t at = 0; at < a.y.size(); ++at) {
    const int64_t c = at % C, q = at / C % Q, p = at / C / Q % P, n = at / C / Q / P;
    std::vector<size_t> inside;
    for (int64_t h = p * a.stride - a.padding; h < p * a.stride - a.padding + a.size; ++h)
      for (int64_t w = q * a.stride - a.padding; w < q * a.stride - a.padding + a.size; ++w)
        if (h >= 0 && h < H && w >= 0 && w < W) inside.push_back(size_t(((n * H + h) * W + w) * C + c));
    size_t best = inside[0];
    double sum = 0;
    for (size_t i : inside) {
      if (x[i] > x[best]) best = i;
      sum += x[i];
    }
    y.push_back(a.average ? sum / double(inside.size()) : x[best]);
    if (!a.average) dx[best] += dy[size_t(at)];
    for (size_t i : inside)
      if (a.average) dx[i] += dy[size_t(at)] / double(inside.size());
  }
}

void expect_pool(PoolArgs a, float beta, const std::string& what) {
  a.beta = beta;
  Values y, dx = values(a.dx);
  for (double& v : dx) v = beta == 0 ? 0 : beta * v;
  reference_pool(a, y, dx);
  pool2d_forward(kCpu, a);
  pool2d_backward(kCpu, a);
  EXPECT_LT(error(a.y, y), a.average ? bound(a.x.dtype()) : 1e-12) << what;
  EXPECT_LT(error(a.dx, dx), bound(a.x.dtype())) << what;
}

TEST(Pool, MaximumAndAverageEqualTheReference) {
  for (DType t : {kF32, kBF16, kF16})
    for (const PoolCase& k : kPoolCases)
      for (bool average : {false, true})
        for (float beta : {0.f, 1.f})
          expect_pool(make_pool(k, t, average), beta,
                      text(t, " case ", &k - kPoolCases, average ? " average" : " max"));
}

TEST(Pool, TheFirstOfEqualMaximaGetsTheGradient) {
  PoolArgs a = make_pool({1, 4, 4, 3, 2, 2, 0, false}, kF32, false);
  a.x = Tensor::zeros(a.x.shape());
  expect_pool(a, 0, "ties");
}

TEST(Pool, ANanInTheWindowIsTheMaximum) {
  PoolArgs a = make_pool({1, 2, 2, 1, 2, 2, 0, false}, kF32, false);
  a.x.data<float>()[1] = NAN;
  pool2d_forward(kCpu, a);
  EXPECT_TRUE(std::isnan(a.y.data<float>()[0]));
  EXPECT_EQ(a.argmax.data<uint8_t>()[0], 1);
}

}  // namespace
}  // namespace skein
