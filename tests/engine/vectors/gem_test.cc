// The passes of GEM: by packets as by elements, in every type, and as SGD where that is what they are.
#include "engine/vectors/gem.h"

#include "engine/vectors/segments.h"
#include "tests/support/packet_shapes.h"

namespace skein {
namespace {
using namespace testing;

class GemPasses : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, GemPasses, kDevices, device_name);

GemArgs args_of(const std::vector<Tensor>& t) {
  return {
      .x = t[0], .m = t[1], .s = t[2], .u = t[3], .pi = {}, .g = t[4], .theta = t[5], .lr = 0.1f, .mu = 0.9f};
}

// vec.h has no clamping, so GEM is tested by comparing packets with elements, and at its limits by algebra.
TEST_P(GemPasses, GemIsTheSameByPacketsAndByElements) {
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
    GemArgs a = args_of(t);
    a.kappa = 1.f, a.decay = 0.01f, a.decayed = n / 2, a.least = 0, a.most = 5;
    gem_update(a);
    results.push_back(t);
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
}

TEST_P(GemPasses, GemDecaysTheSegmentsThatDecay) {
  const int64_t n = 192, front = 128;
  const Segments segments({{.end = front, .columns = front, .decay = 1}, {.begin = front, .end = n}},
                          GetParam());
  std::vector<std::vector<Tensor>> results;
  for (const bool by_segments : {false, true}) {
    std::vector<Tensor> t;
    for (uint64_t s = 0; s < 6; ++s) t.push_back(random_uniform({n}, s + 1).to(GetParam()));
    GemArgs a = args_of(t);
    a.decay = 0.25f, a.decayed = by_segments ? 0 : front, a.segments = by_segments ? &segments : nullptr;
    gem_update(a);
    results.push_back(t);
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
}

// u is rounded once as it is written, and the rest of the pass does not use the rounded value.
TEST_P(GemPasses, GemWritesUInTheTypeOfItsMessage) {
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

TEST_P(GemPasses, GemWithPiOfOneIsPlainSgdAtTheCenter) {
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

}  // namespace
}  // namespace skein
