// Batch norm: the backend against a plain reference in double, and the gradients of the op by differences.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "engine/backend.h"
#include "tests/support/norms.h"
#include "tests/support/reference.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

BatchNormArgs make_norm(const Shape& s, DType t, bool training, bool relu, bool residual,
                        float offset = 0.5f) {
  const int64_t c = s[s.rank() - 1];
  BatchNormArgs a;
  a.x = gaussian(s, t, 1, offset), a.y = Tensor(s, t);
  if (training) a.mean = Tensor({c}), a.rstd = Tensor({c});
  a.gamma = gaussian({c}, kF32, 2, 1), a.shift = gaussian({c}, kF32, 3);
  a.running_mean = gaussian({c}, kF32, 4), a.running_var = gaussian({c}, kF32, 5, 3, 0.3f);
  a.training = training, a.relu = relu;
  if (residual) a.residual = gaussian(s, t, 6);
  a.dy = gaussian(s, t, 7);
  return a;
}

struct Reference {
  Numbers mean, var, y, running_mean, running_var, dx, dresidual, dgamma, dshift;
};

// The mask is taken from `a.y`, as in the contract; for gradients call this after the
// forward pass under test.
Reference reference(const BatchNormArgs& a, const Numbers& running_mean, const Numbers& running_var) {
  const Numbers x = numbers(a.x), r = numbers(a.residual), g = numbers(a.gamma), b = numbers(a.shift),
                dy = numbers(a.dy);
  const Numbers y = numbers(a.y);
  const size_t C = g.size(), M = x.size() / C;
  Reference f{running_mean, running_var, x, running_mean, running_var, dy, dy, Numbers(C), Numbers(C)};
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
  const Numbers rm = numbers(a.running_mean), rv = numbers(a.running_var);
  spoil(a.y), spoil(a.mean), spoil(a.rstd);
  batch_norm_forward(kCpu, a);
  const Reference f = reference(a, rm, rv);
  EXPECT_LT(error(a.y, f.y), limit) << what;
  EXPECT_LT(error(a.running_mean, f.running_mean), 3e-6) << what;
  EXPECT_LT(error(a.running_var, f.running_var), 3e-6) << what;
  if (!a.training) return;
  EXPECT_LT(error(a.mean, f.mean), 3e-6) << what;
}

Numbers plus(Numbers v, const Numbers& w, double beta) {
  for (size_t i = 0; i < v.size(); ++i) v[i] += beta == 0 ? 0 : beta * w[i];
  return v;
}

void expect_backward(BatchNormArgs a, float beta, bool in_place, const std::string& what) {
  const Numbers rm = numbers(a.running_mean), rv = numbers(a.running_var);
  const int64_t c = a.gamma.size();
  batch_norm_forward(kCpu, a);
  const Reference f = reference(a, rm, rv);
  if (!a.training) { ASSERT_EQ(numbers(a.running_mean), rm); }
  a.dx = gaussian(a.x.shape(), a.x.dtype(), 8), a.dgamma = gaussian({c}, kF32, 9),
  a.dshift = gaussian({c}, kF32, 10);
  a.dresidual = in_place ? a.dy : gaussian(a.x.shape(), a.x.dtype(), 11);
  a.dx_beta = a.dgamma_beta = a.dshift_beta = beta;
  a.dresidual_beta = in_place ? 0 : beta;
  const Numbers dx = numbers(a.dx), dr = numbers(a.dresidual), dg = numbers(a.dgamma), ds = numbers(a.dshift);
  if (beta == 0) spoil(a.dx), spoil(a.dgamma), spoil(a.dshift);
  if (beta == 0 && !in_place) spoil(a.dresidual);
  batch_norm_backward(kCpu, a);
  EXPECT_LT(error(a.dx, plus(f.dx, dx, beta)), bound(a.x.dtype())) << what;
  EXPECT_LT(error(a.dresidual, plus(f.dresidual, dr, a.dresidual_beta)), bound(a.x.dtype())) << what;
  EXPECT_LT(error(a.dgamma, plus(f.dgamma, dg, beta)), 3e-5) << what;
  EXPECT_LT(error(a.dshift, plus(f.dshift, ds, beta)), 3e-5) << what;
}

const Shape kNormShapes[] = {{4, 5, 7, 3},    {2, 8, 8, 16},  {7, 1},        {33, 5},
                             {2, 14, 14, 64}, {3, 4, 4, 100}, {9, 9, 9, 130}};

TEST(BatchNorm, ANaNOfAChannelIsInAllItsStatistics) {
  for (DType t : {kF32, kBF16, kF16}) {
    BatchNormArgs a = make_norm({4, 3, 3, 16}, t, true, true, false);
    visit_float(t, [&](auto zero) { a.x.data<decltype(zero)>()[16 + 5] = decltype(zero)(NAN); });
    cpu::batch_norm_forward(a);
    for (const Tensor& each : {a.mean, a.rstd, a.running_mean, a.running_var})
      for (int64_t c = 0; c < 16; ++c) EXPECT_EQ(std::isnan(each.data<float>()[c]), c == 5) << t << ' ' << c;
  }
}

TEST(BatchNorm, RefusesAnImageOfNothing) {
  for (const Shape& s : {Shape{2, 2, 2, 0}, Shape{0, 2, 2, 3}})
    EXPECT_THROW(batch_norm(Tensor(s), fresh(s[3]), {.training = false}), Error) << s;
}

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

ChannelSums sums_around_zero(const Tensor& x) {
  const int64_t C = x.dim(-1);
  const ChannelSums s{Tensor::zeros({C}), Tensor::zeros({C})};
  const Numbers values = numbers(x);
  for (size_t i = 0; i < values.size(); ++i) {
    s.sum.data<float>()[i % size_t(C)] += float(values[i]);
    s.squares.data<float>()[i % size_t(C)] += float(values[i] * values[i]);
  }
  return s;
}

TEST(BatchNorm, StatisticsOfGivenSumsEqualTheReference) {
  for (DType t : {kF32, kBF16, kF16})
    for (const Shape& s : kNormShapes) {
      BatchNormArgs a = make_norm(s, t, true, true, true);
      a.sums = sums_around_zero(a.x);
      expect_forward(a, bound(t), text(t, ' ', s));
    }
}

// Where the mean of any channel is so large that squares cancel, the image is read instead.
TEST(BatchNorm, SumsThatCancelAreNotUsed) {
  for (const float offset : {10.f, 100.f}) {
    BatchNormArgs read = make_norm({4096, 24}, kF32, true, false, false, offset), given = read;
    given.mean = Tensor({24}), given.rstd = Tensor({24});
    given.running_mean = read.running_mean.clone(), given.running_var = read.running_var.clone();
    given.sums = sums_around_zero(given.x);
    batch_norm_forward(kCpu, read), batch_norm_forward(kCpu, given);
    EXPECT_EQ(numbers(given.mean) == numbers(read.mean), offset > 11) << offset;
    EXPECT_EQ(numbers(given.rstd) == numbers(read.rstd), offset > 11) << offset;
    EXPECT_LT(error(given.rstd, numbers(read.rstd)), 1e-3) << offset;
  }
}

// From 8 MiB on results are written past the caches, unlike those of smaller images. Without the batch's
// statistics a norm of many images is that of each.
TEST(BatchNorm, LargeResultsAreThoseOfTheirHalves) {
  for (DType t : {kF32, kBF16, kF16}) {
    const Shape all{2, 64, t == kF32 ? 128 : 256, 128}, half{1, all[1], all[2], all[3]};
    BatchNormArgs a = make_norm(all, t, false, true, false);
    a.dx = Tensor(all, t);
    ASSERT_GE(a.y.bytes(), 8 << 20);
    const Tensor y(all, t), dx(all, t);
    spoil(a.y), spoil(a.dx);
    batch_norm_forward(kCpu, a), batch_norm_backward(kCpu, a);
    for (int64_t i : {0, 1}) {
      const auto part = [&](const Tensor& of) { return of.view(half, i * of.size() / 2); };
      BatchNormArgs b = a;
      b.x = part(a.x), b.y = part(y), b.dy = part(a.dy), b.dx = part(dx);
      batch_norm_forward(kCpu, b), batch_norm_backward(kCpu, b);
    }
    EXPECT_EQ(numbers(a.y), numbers(y)) << t;
    EXPECT_EQ(numbers(a.dx), numbers(dx)) << t;
  }
}

TEST(BatchNorm, RepeatsItselfBitForBitForOneNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const DType t : {kF32, kBF16, kF16})
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      BatchNormArgs a = make_norm({8, 16, 16, 24}, t, true, true, false);
      a.dx = Tensor(a.x.shape(), t), a.dgamma = Tensor({24}), a.dshift = Tensor({24});
      const Tensor results[] = {a.y, a.mean, a.dx, a.dgamma, a.dshift};
      std::vector<Numbers> first;
      batch_norm_forward(kCpu, a), batch_norm_backward(kCpu, a);
      for (const Tensor& r : results) first.push_back(numbers(r)), spoil(r);
      batch_norm_forward(kCpu, a), batch_norm_backward(kCpu, a);
      for (size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(numbers(results[i]), first[i]) << t << ", " << threads << " threads, result " << i;
    }
  omp_set_num_threads(before);
}

TEST(BatchNorm, HasItsGradients) {
  const NormState s = fresh(3);
  for (const bool training : {true, false})
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(text("training ", training, " relu ", relu));
      const Values in{random_normal({4, 3, 2, 3}, 1), s.gamma, s.shift, random_normal({4, 3, 2, 3}, 2)};
      gradcheck(
          [&](const Values& v) {
            return batch_norm(v[0], with(s, v[1], v[2]), {training, relu, {}});
          },
          {in[0], in[1], in[2]}, kFine);
      gradcheck(
          [&](const Values& v) {
            return batch_norm(v[0], with(s, v[1], v[2]), {training, relu, v[3]});
          },
          in, kFine);
      gradcheck(
          [&](const Values& v) {
            return batch_norm(v[0], with(s, v[1], v[2]), {training, relu, v[0]});
          },
          {in[0], in[1], in[2]}, kFine);
    }
}

}  // namespace
}  // namespace skein
