// Gossip in the bits of a codec: nothing is lost, workers agree, and only the first message over an edge
// is a model.
#include "optim/gossip/edge_copies.h"

#include "tests/support/numbers/difference.h"
#include "tests/support/traces.h"

namespace skein {
namespace {

using namespace trainee;

const char* const kCodedRows[] = {"d-psgd", "sgp", "d2", "momentum-tracking", "noloco --tau 1", "osgp"};

std::pair<std::string, optim::Options> row_and_flags(const std::string& line, const std::string& wire) {
  const size_t end = std::min(line.find(' '), line.size());
  optim::Options o = flags_of(line.substr(end));
  o.set("wire", wire);
  return {line.substr(0, end), o};
}

// Workers that only gossip, from models far apart.
TEST(EdgeCopies, KeepTheMeanAndBringTheModelsTogether) {
  const Problem p{.size = 700, .zero_gradient = true, .start_spread = 1};
  for (const char* row : kCodedRows)
    for (const char* wire : {"int8", "int4", "topk:0.1"}) {
      if (row == std::string("d2") && wire == std::string("topk:0.1")) continue;  // refused
      const auto [name, o] = row_and_flags(row, wire);
      const auto h = train(p, name, o, 4, 300);
      for (size_t i = 0; i < size_t(p.size); i += 7) {
        double before = 0, after = 0, apart = 0;
        for (const auto& x : h.front()) before += x[i] / 4;
        for (const auto& x : h.back())
          after += x[i] / 4, apart = differences::worse(apart, std::abs(x[i] - h.back()[0][i]));
        EXPECT_NEAR(after, before, 1e-4) << row << ' ' << wire << ' ' << i;
        EXPECT_LT(apart, 1e-3) << row << ' ' << wire << ' ' << i;
      }
    }
}

TEST(EdgeCopies, OnlyTheFirstMessageOverAnEdgeIsAModel) {
  constexpr int64_t kSize = 40960, kSteps = 9;
  in_local_world(2, [&](comm::Communicator& c) {
    Trainee t({.size = kSize}, "d-psgd", options({{"wire", "int4"}}), c);
    for (int64_t k = 0; k < kSteps; ++k) t.step(k);
    const double whole = 4 * kSize, coded = double(parse_codec("int4").bytes(kSize));
    EXPECT_NEAR(double(c.meter().traffic().bytes), whole + (kSteps - 1) * coded, 0.01 * whole);
    EXPECT_LT(7 * coded, whole);
  });
}

// The weight of push-sum is never rounded: workers that start alike and have no gradients stay as they are.
TEST(EdgeCopies, PushSumsWeightTravelsAsItIs) {
  const Problem p{.zero_gradient = true};
  for (const char* row : {"sgp", "osgp"}) {
    const auto h = train(p, row, options({{"wire", "int4"}}), 5, 30);
    for (const auto& x : h.back()) EXPECT_EQ(x, h.front()[0]) << row;
  }
}

}  // namespace
}  // namespace skein
