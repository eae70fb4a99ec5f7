// Fused passes are the functions of vec.h one after the other, bit for bit; packets are elements.
#include "engine/vectors/mixing.h"

#include <cstring>

#include "engine/vectors/gem.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

// Lengths around packets, and one past the length from which loops run in parallel.
constexpr int64_t kLengths[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 1023, 1024, 1027, 20011};

// f(n, make) for every length, with tensors that begin on a packet and tensors that do not; make(seed, type)
// is a random tensor.
using Make = std::function<Tensor(uint64_t seed, DType)>;
void for_shapes(Device d, const std::function<void(int64_t, const Make&)>& f) {
  for (const int64_t n : kLengths)
    for (const int64_t at : {0, 1}) {
      SCOPED_TRACE(text(n, " elements from ", at));
      f(n,
        [&](uint64_t seed, DType t) { return random_uniform({n + at}, seed, -1, 1, t).to(d).view({n}, at); });
    }
}

::testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(kCpu), y = b.to(kCpu);
  if (!a.device().is_host()) current_stream(a.device()).sync();
  for (int64_t i = 0; i < x.size(); ++i)
    if (std::memcmp(x.in<float>() + i, y.in<float>() + i, sizeof(float)) != 0)
      return ::testing::AssertionFailure()
             << "element " << i << " is " << x.in<float>()[i] << ", wanted " << y.in<float>()[i];
  return ::testing::AssertionSuccess();
}

class Mixing : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Mixing, kDevices, device_name);

// y <- self x + messages + rounding errors, step by step.
void stepwise(const Tensor& y, float self, const Tensor& x, const std::vector<Tensor>& in,
              const std::vector<float>& sent, DType wire) {
  scaled_copy(y, self, x);
  for (const Tensor& m : in) axpy(y, 1.f, m);
  for (const float factor : sent) {
    const Tensor share = x.clone(), low(x.shape(), wire, x.device()), left = x.clone();
    scaled_copy(share, factor, x);
    copy(low, share);
    copy(left, share), axpy(left, -1.f, low);
    axpy(y, 1.f, left);
  }
}

TEST_P(Mixing, AGossipIsItsSteps) {
  for_shapes(GetParam(), [](int64_t, const Make& make) {
    for (const DType type : {kF32, kBF16})
      for (size_t messages = 0; messages <= 5; ++messages)
        for (size_t shares = 0; shares <= 3; ++shares) {
          SCOPED_TRACE(text(messages, " messages ", type, ", ", shares, " shares"));
          const Tensor x = make(1, kF32), y = make(2, kF32), z = make(3, kF32), own = make(1, kF32);
          std::vector<Tensor> in;
          for (size_t m = 0; m < messages; ++m) in.push_back(make(10 + m, m == 4 ? kF32 : type));
          std::vector<float> factors;
          for (size_t k = 0; k < shares; ++k) factors.push_back(0.3f / float(k + 1));
          const Tensor want = x.clone(), model = x.clone();
          stepwise(want, 0.37f, x, in, factors, kBF16);
          scaled_copy(model, 1 / 0.7, want);
          mix({.y = y,
               .x = x,
               .self = 0.37f,
               .in = in,
               .sent = factors,
               .wire = kBF16,
               .z = z,
               .by = 1 / 0.7});
          EXPECT_TRUE(same_bits(y, want));
          EXPECT_TRUE(same_bits(z, model));
          EXPECT_TRUE(same_bits(x, own)) << "x is only read";
          mix({.y = x, .x = x, .self = 0.37f, .in = in, .sent = factors, .wire = kBF16});
          EXPECT_TRUE(same_bits(x, want)) << "in place";
        }
  });
}

TEST_P(Mixing, ANarrowMessageIsReadAsIfItHadBeenWidened) {
  for_shapes(GetParam(), [](int64_t, const Make& make) {
    for (const DType type : {kBF16, kF16})
      for (const auto& sent : {std::vector<float>{}, {0.3f}, {0.3f, 0.2f, 0.1f}}) {
        const Tensor x = make(1, kF32);
        std::vector<Tensor> narrow, wide, made;
        for (uint64_t m = 0; m < 3; ++m) {
          narrow.push_back(make(10 + m, type));
          wide.push_back(make(20, kF32));
          copy(wide.back(), narrow.back());
        }
        for (const auto& in : {narrow, wide}) {
          const Tensor y = make(2, kF32), z = make(3, kF32);
          mix({.y = y, .x = x, .self = 0.37f, .in = in, .sent = sent, .wire = type, .z = z, .by = 1.3f});
          made.push_back(y), made.push_back(z);
        }
        EXPECT_TRUE(same_bits(made[0], made[2])) << type << ' ' << sent.size();
        EXPECT_TRUE(same_bits(made[1], made[3])) << type << ' ' << sent.size();
      }
  });
}

TEST_P(Mixing, NothingIsRoundedOffOnAWideWire) {
  const Tensor x = random_uniform({100}, 1).to(GetParam()), y = x.clone(), z = x.clone();
  mix({.y = y, .x = x, .self = 0.5f, .sent = {0.3f, 0.2f}, .wire = kF32});
  scaled_copy(z, 0.5f, x);
  EXPECT_TRUE(same_bits(y, z));
}

TEST_P(Mixing, ElasticPullsAreTheirSteps) {
  for_shapes(GetParam(), [](int64_t, const Make& make) {
    const Tensor x = make(1, kF32), z = make(2, kF32), mean = make(3, kF32);
    const Tensor x2 = x.clone(), z2 = z.clone();
    elastic_pull(x, z, mean, 0.3f, 0.6f);
    lerp(x2, z2, 0.3f), lerp(z2, mean, 0.6f);
    EXPECT_TRUE(same_bits(x, x2));
    EXPECT_TRUE(same_bits(z, z2));

    const Tensor e = make(4, kF32), e2 = x.clone();
    axpy(e2, -1.f, z2), scale(e2, 0.3f), axpy(z2, 1.f, e2);
    elastic_commit(z, e, x, 0.3f);
    EXPECT_TRUE(same_bits(e, e2));
    EXPECT_TRUE(same_bits(z, z2));
  });
}

TEST_P(Mixing, AnOuterStepIsItsSteps) {
  for_shapes(GetParam(), [](int64_t, const Make& make) {
    for (const float beside : {0.f, 0.4f}) {
      const Tensor z = make(1, kF32), m = make(2, kF32), mean = make(3, kF32), x = make(4, kF32);
      const Tensor z2 = z.clone(), m2 = m.clone(), d = mean.clone(), kept = mean.clone();
      axpy(d, -1.f, z2);
      scale(m2, 0.9f), axpy(m2, -0.7f, d);
      axpy(z2, 0.63f, m2);
      if (beside != 0) axpy(z2, beside, d);
      outer_step({.z = z,
                  .m = m,
                  .mean = mean,
                  .x = x,
                  .decay = 0.9f,
                  .gain = -0.7f,
                  .along = 0.63f,
                  .beside = beside});
      EXPECT_TRUE(same_bits(m, m2));
      EXPECT_TRUE(same_bits(z, z2));
      EXPECT_TRUE(same_bits(x, z2));
      EXPECT_TRUE(same_bits(mean, kept)) << "the mean is only read";
    }
  });
}

TEST_P(Mixing, SgdIsItsSteps) {
  for_shapes(GetParam(), [](int64_t n, const Make& make) {
    for (const float mu : {0.f, 0.9f})
      for (const bool nesterov : {false, true}) {
        const Tensor x = make(1, kF32), v = make(2, kF32), g = make(3, kF32), at = make(4, kF32);
        const Tensor x2 = x.clone(), v2 = v.clone(), d = g.clone(), u = g.clone();
        const int64_t decayed = n / 3;
        if (decayed > 0) axpy(d.view({decayed}), 0.01f, at.view({decayed}));
        scale(v2, mu), axpy(v2, 1.f, d);
        copy(u, mu == 0 ? d : v2);
        if (mu != 0 && nesterov) copy(u, v2), scale(u, mu), axpy(u, 1.f, d);
        axpy(x2, -0.1f, u);
        sgd_update({.x = x,
                    .v = mu == 0 ? Tensor() : v,
                    .g = g,
                    .at = at,
                    .lr = 0.1f,
                    .mu = mu,
                    .decay = 0.01f,
                    .decayed = decayed,
                    .nesterov = nesterov});
        EXPECT_TRUE(same_bits(x, x2)) << mu << nesterov;
        if (mu != 0) { EXPECT_TRUE(same_bits(v, v2)) << nesterov; }
      }
  });
}

// vec.h has no clamping, so GEM is tested by comparing packets with elements, and at its limits by algebra.
TEST_P(Mixing, GemIsTheSameByPacketsAndByElements) {
  const int64_t n = 1027;
  std::vector<std::vector<Tensor>> results;
  for (const int64_t at : {0, 1}) {
    std::vector<Tensor> t;
    for (uint64_t s = 0; s < 6; ++s)
      t.push_back([&] {
        const Tensor all({n + at});
        copy(all.view({n}, at), random_uniform({n}, s + 1));
        return all.to(GetParam()).view({n}, at);
      }());
    gem_update({.x = t[0],
                .m = t[1],
                .s = t[2],
                .u = t[3],
                .pi = {},
                .g = t[4],
                .theta = t[5],
                .lr = 0.1f,
                .mu = 0.9f,
                .kappa = 1.f,
                .decay = 0.01f,
                .decayed = n / 2,
                .least = 0,
                .most = 5});
    results.push_back(t);
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
}

// u is rounded once as it is written, and the rest of the pass does not use the rounded value.
TEST_P(Mixing, GemWritesUInTheTypeOfItsMessage) {
  for_shapes(GetParam(), [](int64_t n, const Make& make) {
    const auto updated = [&](DType type) {
      std::vector<Tensor> t;
      for (uint64_t s = 0; s < 4; ++s) t.push_back(make(s + 1, s == 3 ? type : kF32));
      gem_update({.x = t[0],
                  .m = t[1],
                  .s = t[2],
                  .u = t[3],
                  .pi = {},
                  .g = make(5, kF32),
                  .theta = make(6, kF32),
                  .lr = 0.1f,
                  .mu = 0.9f,
                  .kappa = 1.f,
                  .decay = 0.01f,
                  .decayed = n / 2});
      return t;
    };
    const auto exact = updated(kF32);
    for (const DType type : {kBF16, kF16}) {
      const auto narrow = updated(type);
      const Tensor want = make(4, type), seen = make(4, kF32), wanted = make(4, kF32);
      copy(want, exact[3]), copy(wanted, want), copy(seen, narrow[3]);
      EXPECT_TRUE(same_bits(seen, wanted)) << type;
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(narrow[i], exact[i])) << type << ' ' << i;
    }
  });
}

TEST_P(Mixing, GemWithPiOfOneIsPlainSgdAtTheCenter) {
  for_shapes(GetParam(), [](int64_t n, const Make& make) {
    const Tensor x = make(1, kF32), m = make(2, kF32), s = make(3, kF32), u = make(4, kF32),
                 g = make(5, kF32), theta = make(6, kF32), d = g.clone(), at = x.clone(),
                 want = theta.clone();
    const int64_t decayed = n / 2;
    if (decayed > 0) axpy(d.view({decayed}), 0.01f, at.view({decayed}));
    scale(d, -0.1f);
    axpy(want, 1.f, d);
    gem_update({.x = x,
                .m = m,
                .s = s,
                .u = u,
                .pi = {},
                .g = g,
                .theta = theta,
                .lr = 0.1f,
                .mu = 0.9f,
                .kappa = 1.f,
                .decay = 0.01f,
                .decayed = decayed,
                .least = 1,
                .most = 1});
    EXPECT_TRUE(same_bits(u, d));
    EXPECT_TRUE(same_bits(s, theta));
    EXPECT_TRUE(same_bits(x, want));
  });
}

// A flag that is 0 turns a pass off; any other value changes nothing.
TEST_P(Mixing, AFlagTurnsThePassOff) {
  for_shapes(GetParam(), [](int64_t, const Make& make) {
    const Tensor off = Tensor::zeros({1}, kF32, make(1, kF32).device()), yes = off.clone();
    fill(yes, 1.f);
    const auto stepped = [&](const Tensor& flag) {
      const Tensor x = make(1, kF32), v = make(2, kF32);
      sgd_update({.x = x,
                  .v = v,
                  .g = make(3, kF32),
                  .at = x,
                  .lr = 0.1f,
                  .mu = 0.9f,
                  .on = flag ? flag.in<float>() : nullptr});
      return std::vector<Tensor>{x, v};
    };
    const auto turned = [&](const Tensor& flag) {
      const Tensor x = make(1, kF32), m = make(2, kF32), s = make(3, kF32), u = make(4, kF32),
                   pi = make(7, kF32);
      gem_update({.x = x,
                  .m = m,
                  .s = s,
                  .u = u,
                  .pi = pi,
                  .g = make(5, kF32),
                  .theta = make(6, kF32),
                  .lr = 0.1f,
                  .mu = 0.9f,
                  .on = flag ? flag.in<float>() : nullptr});
      return std::vector<Tensor>{x, m, s, u, pi};
    };
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(same_bits(stepped(off)[i], make(i + 1, kF32))) << i;
      EXPECT_TRUE(same_bits(stepped(yes)[i], stepped({})[i])) << i;
    }
    const Tensor none = make(1, kF32);
    fill(none, 0.f);
    const Tensor still[] = {make(6, kF32), make(2, kF32), make(6, kF32), none, none};
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(same_bits(turned(off)[i], still[i])) << i;
      EXPECT_TRUE(same_bits(turned(yes)[i], turned({})[i])) << i;
    }
  });
}

TEST(MixingErrors, SizesAndPlacesMustAgree) {
  const Tensor x = Tensor::zeros({3}), y = Tensor::zeros({4}),
               far = Tensor::zeros({3}, kF32, {Device::kApart, 0});
  EXPECT_THROW(mix({.y = x, .x = y}), Error);
  EXPECT_THROW(mix({.y = x, .x = x, .in = {far}}), Error);
  EXPECT_THROW(elastic_pull(x, x, y, 0.1f, 0.1f), Error);
  EXPECT_THROW(elastic_commit(x, far, x, 0.1f), Error);
  EXPECT_THROW(outer_step({.z = x, .m = x, .mean = y}), Error);
}

}  // namespace
}  // namespace skein
