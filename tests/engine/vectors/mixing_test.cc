// Fused passes are the functions of vec.h one after the other, bit for bit; packets are elements.
#include "engine/vectors/mixing.h"

#include "engine/vectors/gem.h"
#include "tests/support/packet_shapes.h"

namespace skein {
namespace {
using namespace testing;

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

TEST_P(Mixing, AnExchangeIsItsSteps) {
  for_shapes(GetParam(), [](int64_t, const Make& make) {
    for (const DType type : {kF32, kBF16, kF16})
      for (const bool moved : {false, true}) {
        const Tensor x = make(1, kF32), sent = make(2, kF32), received = make(3, type);
        const Tensor want = x.clone(), mean = x.clone();
        scaled_copy(mean, 0.5f, sent), axpy(mean, 0.5f, received);
        moved ? (axpy(want, 1.f, mean), axpy(want, -1.f, sent)) : copy(want, mean);
        go_half_way(x, sent, received, moved);
        EXPECT_TRUE(same_bits(x, want)) << type << ' ' << moved;
      }
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
  EXPECT_THROW(go_half_way(x, x, far, true), Error);
  EXPECT_THROW(outer_step({.z = x, .m = x, .mean = y}), Error);
}

}  // namespace
}  // namespace skein
