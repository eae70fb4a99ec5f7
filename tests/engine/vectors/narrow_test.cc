// A 16-bit copy that is marked as current is the rounded vector, whatever wrote the vector.
#include "engine/vectors/narrow.h"

#include <cstring>

#include "comm/average/in_place.h"
#include "engine/vectors/gem.h"
#include "engine/vectors/mixing.h"
#include "tests/engine/vectors/narrow_state.h"
#include "tests/support/servers.h"
#include "tests/support/strategy_cases.h"
#include "tests/support/testing.h"

namespace skein {
namespace {

using testing::kDevices, testing::device_name, testing::random_uniform;

constexpr int64_t kN = 1027;

class Narrowed : public testing::OnDevice {
 protected:
  Tensor make(uint64_t seed) const { return random_uniform({kN}, seed).to(GetParam()); }
  // Makes a vector with a current copy.
  Tensor with_copy(DType t = kBF16) const {
    const Tensor x = make(1).clone();
    keep_narrow(x, t);
    const TrustNarrow trust(x);
    return x;
  }
  static bool copy_is_rounded(const Tensor& x) {
    const TrustNarrow trust(x);
    return testing::values(narrow_of(x, kBF16)) == rounded(x);
  }
  static std::vector<double> rounded(const Tensor& x) {
    Tensor low(x.shape(), kBF16, x.device());
    copy(low, x);
    return testing::values(low);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Narrowed, kDevices, device_name);

TEST_P(Narrowed, IsNotCurrentBeforeItIsMade) {
  const Tensor x = make(1).clone();
  EXPECT_FALSE(narrow_is_current(x));
  keep_narrow(x, kBF16);
  EXPECT_FALSE(narrow_is_current(x));
  EXPECT_TRUE(copy_is_rounded(x));
  EXPECT_TRUE(narrow_is_current(x));
  EXPECT_THROW(keep_narrow(x, kBF16), Error);
}

TEST_P(Narrowed, IsGivenOutOnlyWhileItIsTrusted) {
  const Tensor x = with_copy(), window = x.view({5, 7}, 11);
  EXPECT_FALSE(narrow_of(x, kBF16));
  const TrustNarrow trust(x);
  EXPECT_EQ(testing::values(narrow_of(window, kBF16)), rounded(window));
  EXPECT_EQ(narrow_of(window, kBF16).shape(), window.shape());
  EXPECT_FALSE(narrow_of(window, kF32));
  EXPECT_FALSE(narrow_of(make(2), kBF16)) << "another vector";
  const TrustNarrow nothing(make(2));
}

TEST_P(Narrowed, EveryOtherWriteEndsThatItIsCurrent) {
  const Tensor other = make(2), mean = make(3);
  const std::pair<const char*, std::function<void(const Tensor&)>> writes[] = {
      {"fill", [](const Tensor& x) { fill(x, 3.f); }},
      {"copy", [&](const Tensor& x) { copy(x, other); }},
      {"copy_bytes", [&](const Tensor& x) { copy_bytes(x, other); }},
      {"scale", [](const Tensor& x) { scale(x, 3.f); }},
      {"scaled_copy", [&](const Tensor& x) { scaled_copy(x, 3.f, other); }},
      {"axpy", [&](const Tensor& x) { axpy(x, 3.f, other); }},
      {"lerp", [&](const Tensor& x) { lerp(x, other, 0.3f); }},
      {"mix", [&](const Tensor& x) { mix({.y = x, .x = other, .self = 0.5f}); }},
      {"mix, as the model",
       [&](const Tensor& x) { mix({.y = other.clone(), .x = other, .z = x, .by = 2.f}); }},
      {"elastic_pull", [&](const Tensor& x) { elastic_pull(x, other.clone(), mean, 0.3f, 0.3f); }},
      {"outer_step",
       [&](const Tensor& x) { outer_step({.z = other.clone(), .m = mean.clone(), .mean = mean, .x = x}); }},
      {"a window", [](const Tensor& x) { fill(x.view({3}, 5), 3.f); }},
      {"the host",
       [](const Tensor& x) {
         if (x.device().is_host())
           x.data<float>()[7] = 3;
         else
           fill(x, 3.f);
       }},
      {"the host, by address", [](const Tensor& x) {
         if (x.device().is_host())
           std::memset(x.raw(), 0, 8);
         else
           fill(x, 3.f);
       }}};
  for (const auto& [what, write] : writes) {
    const Tensor x = with_copy();
    ASSERT_TRUE(narrow_is_current(x));
    write(x);
    EXPECT_FALSE(narrow_is_current(x)) << what;
    EXPECT_TRUE(copy_is_rounded(x)) << what;
  }
}

TEST_P(Narrowed, ReadingDoesNot) {
  const Tensor x = with_copy(), y = make(2);
  copy(y, x), axpy(y, 1.f, x), lerp(y, x, 0.5f), dot(x, y);
  mix({.y = y, .x = x});
  x.in<float>();
  EXPECT_TRUE(narrow_is_current(x));
}

TEST_P(Narrowed, TheOptimizersPassWritesBoth) {
  for (const float mu : {0.f, 0.9f}) {
    const Tensor x = with_copy();
    sgd_update({.x = x, .v = mu == 0 ? Tensor() : make(2), .g = make(3), .at = x, .lr = 0.1f, .mu = mu});
    EXPECT_TRUE(narrow_is_current(x));
    EXPECT_TRUE(copy_is_rounded(x));
    EXPECT_NE(testing::values(x), testing::values(make(1)));
  }
  const Tensor x = with_copy();
  gem_update({.x = x,
              .m = make(2),
              .s = make(3),
              .u = make(4),
              .pi = {},
              .g = make(5),
              .theta = make(6),
              .lr = 0.1f});
  EXPECT_TRUE(narrow_is_current(x));
  EXPECT_TRUE(copy_is_rounded(x));
}

TEST_P(Narrowed, APassThatIsTurnedOffLeavesBothTheSame) {
  const Tensor off = Tensor::zeros({1}, kF32, GetParam()), x = make(1).clone();
  keep_narrow(x, kBF16);
  sgd_update({.x = x, .v = {}, .g = make(3), .at = x, .lr = 0.1f, .on = off.in<float>()});
  EXPECT_TRUE(copy_is_rounded(x));
  EXPECT_EQ(testing::values(x), testing::values(make(1)));
}

TEST_P(Narrowed, APassOverAPartDoesNotMakeItCurrent) {
  const Tensor x = with_copy(), part = x.view({100}, 4), g = random_uniform({100}, 9).to(GetParam());
  sgd_update({.x = part, .v = {}, .g = g, .at = part, .lr = 0.1f});
  EXPECT_FALSE(narrow_is_current(x));
  EXPECT_TRUE(copy_is_rounded(x));
}

TEST(NarrowErrors, OnlyF32FromTheFrontIntoSixteenBits) {
  EXPECT_THROW(keep_narrow(Tensor({8}), kF32), Error);
  EXPECT_THROW(keep_narrow(Tensor({8}, kBF16), kBF16), Error);
  EXPECT_THROW(keep_narrow(Tensor({8}).view({4}, 4), kBF16), Error);
}

TEST(NarrowOfPeers, ASumThatPeersWriteEndsIt) {
  trainee::in_local_world(3, [](comm::Communicator& c) {
    const Tensor x({5000}, kF32, c.allocator());
    fill(x, float(c.rank()));
    keep_narrow(x, kBF16);
    { const TrustNarrow now(x); }
    c.all_reduce(x).wait();
    EXPECT_FALSE(narrow_is_current(x));
    { const TrustNarrow now(x); }
    if (c.rank() < 2) comm::average_in_place(c, 1 - c.rank(), x, 1, 0);
    EXPECT_EQ(narrow_is_current(x), c.rank() == 2);
    c.barrier();
  });
}

// Trainee checks at every gradient and after every step.
TEST(NarrowLaw, AfterEveryStepOfEveryRowACurrentCopyIsTheRoundedVector) {
  for (const Device d : {kCpu, Device{Device::kApart, 0}}) {
    trainee::Problem p{.momentum = 0.9f, .noise = 1, .start_spread = 1, .narrow = true};
    p.device = d;
    for (const trainee::Case& c : trainee::cases(4))
      EXPECT_NO_THROW(trainee::train(p, c.row->name, c.options, 4, 9)) << c.row->name << c.flags;
    for (const char* row : {"downpour", "dynsgd", "agn", "easgd-async", "eamsgd-async", "gem"})
      trainee::with_servers(p, row, trainee::options({{"tau", "2"}}), 3, false,
                            [&](trainee::Trainee& t, int) {
                              for (int64_t k = 0; k < 9; ++k) t.step(k);
                              t.strategy->settle(t.worker);
                              t.worker.comm.barrier();
                            });
  }
}

TEST(NarrowLaw, RowsWhoseLastPassIsTheRuleNeedNoOther) {
  trainee::Problem p{.momentum = 0.9f, .narrow = true};
  for (const char* row : {"allreduce", "local-sgd"})
    trainee::in_local_world(2, [&](comm::Communicator& c) {
      trainee::Trainee t(p, row, trainee::options({{"tau", "4"}}), c);
      for (int64_t k = 0; k < 8; ++k) t.step(k);
      EXPECT_EQ(t.current, std::string(row) == "allreduce" ? 8 : 6) << row;
    });
}

}  // namespace
}  // namespace skein
