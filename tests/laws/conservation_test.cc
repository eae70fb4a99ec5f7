// Gossip loses nothing: the sums of w and of X, over workers and what is on its way, through ten
// thousand random steps.
#include <atomic>
#include <fstream>

#include "comm/average/averaging.h"
#include "comm/communicator/words.h"
#include "tests/support/files.h"
#include "tests/support/peek.h"
#include "tests/support/sim_trainee.h"

namespace skein {
namespace {

using namespace trainee;

constexpr int64_t kElements = 6, kSteps = 2000;  // of each of five workers

// Sums over the ranks, in double.
std::vector<double> total(comm::Communicator& c, std::vector<double> mine) {
  std::vector<double> sum(mine.size(), 0.0);
  for (const auto& theirs : comm::gather_numbers(c, mine))
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += theirs[i];
  return sum;
}

// What a rank holds of w and X, with what has come and is not absorbed.
std::vector<double> mass(const Trainee& t) {
  const Peek state(*t.strategy);
  std::vector<double> held(1 + kElements, 0.0);
  for (const auto& [name, v] : state.numbers)
    if (name == "w" || name.ends_with(".weight")) held[0] += v;
  for (const auto& [name, v] : state.vectors)
    if (name == "x" || name.ends_with(".x"))
      for (size_t i = 0; i < size_t(kElements); ++i) held[1 + i] += v[i];
  return held;
}

struct Counts {
  std::atomic<int64_t> duplicates{0}, overtaken{0}, unpunctual{0};
};

// Random gradients, random times between steps, messages that are late, lost, doubled and out of order; now
// and then all meet and add up what they hold.
void conserves(const std::string& row, const optim::Options& o, int n, Counts& counts) {
  SCOPED_TRACE(row + " " + o.word("topology", "") + " " + o.word("peers", ""));
  const Weather weather{.seed = 7,
                        .latency = 0.5,
                        .jitter = 3,
                        .loss = 0.1,
                        .retry = 1,
                        .duplication = 0.2,
                        .overtaking = true};
  const Draw meetings{13, Purpose::kTest, 0, 0};  // the same for all
  const comm::sim::Counts network = in_sim_world(n, weather, [&](comm::Communicator& c) {
    Trainee t({.size = kElements, .start_spread = 1}, row, o, c);
    const Draw work{17, Purpose::kTest, 0, uint32_t(c.rank())};
    std::vector<double> expected = mass(t);
    int64_t k = 0;
    t.worker.oracle = [&](const optim::Slices&) {
      for (int64_t i = 0; i < kElements; ++i) {
        const float g = t.g.data<float>()[i] = work.unit(uint64_t(k * 10 + i)) - 0.5f;
        expected[size_t(i) + 1] -= 0.1 * double(g);
      }
      return Tensor::of<float>({1}, {0.f});
    };
    for (; k < kSteps; ++k) {
      spend(2 * double(work.unit(uint64_t(k * 10 + 9))));
      t.step(k);
      if (meetings.unit(uint64_t(k)) > 0.01f && k + 1 < kSteps) continue;
      t.strategy->settle(t.worker);
      const std::vector<double> want = total(c, expected), now = total(c, mass(t));
      ASSERT_NEAR(now[0], want[0], 1e-9) << "w after step " << k;
      for (size_t i = 1; i < now.size(); ++i) ASSERT_NEAR(now[i], want[i], 5e-4) << "X after step " << k;
    }
    const Peek state(*t.strategy);
    if (state.numbers.count("started")) counts.unpunctual += state.numbers.at("started") != double(kSteps);
  });
  counts.duplicates += network.duplicates, counts.overtaken += network.overtaken;
}

class Conservation : public ::testing::Test {
 protected:
  // Regular with a changing number of peers, irregular, and one whose weights are not 1.
  std::vector<optim::Options> graphs() {
    const std::string path = folder_ / "graph.json";
    std::ofstream(path)
        << R"({"n": 5, "rounds": [{"edges": [[0,0,0.25],[0,1,0.5],[0,4,0.25],[1,1,0.5],[1,2,0.5],
        [2,2,0.9],[2,0,0.1],[3,3,0.3],[3,2,0.7],[4,4,0.5],[4,3,0.5]]},
        {"edges": [[0,0,1],[1,0,0.3],[1,1,0.7],[2,2,1],[3,4,0.2],[3,3,0.8],[4,4,0.6],[4,0,0.4]]}]})";
    return {options({{"peers", "1@0,2@1,4@2,3@3"}, {"steps-per-epoch", "450"}}),
            options({{"topology", "base"}, {"base", "2"}}), options({{"topology", "file:" + path}})};
  }
  testing::ScratchDir folder_;
  Counts counts_;
};

TEST_F(Conservation, OfSgp) {
  for (const auto& o : graphs()) conserves("sgp", o, 5, counts_);
  EXPECT_GT(counts_.duplicates, 1000);
}

TEST_F(Conservation, OfOverlapSgp) {
  for (auto o : graphs()) {
    o.set("staleness", "4");
    conserves("osgp", o, 5, counts_);
  }
  EXPECT_GT(counts_.duplicates, 1000);
  EXPECT_GT(counts_.overtaken, 10);
  EXPECT_EQ(counts_.unpunctual, 15) << "gossips were to be late";
}

TEST_F(Conservation, OfAdPsgd) {
  for (const int n : {6, 5}) conserves("ad-psgd", {}, n, counts_);
  EXPECT_GT(counts_.duplicates, 100);
}

// ---- over a wire of bf16
// ------------------------------------------------------------------------------------------
const comm::CommunicatorOptions kNarrow{.deadline = 20, .wire = kBF16};

Tensor thirds(int rank) {
  Tensor x({1000});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = float(rank + 1) / 3 + float(i) / 7000;
  return x;
}
double sum_over_ranks(comm::Communicator& c, const Tensor& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) sum += x.data<float>()[i];
  return total(c, {sum})[0];
}

TEST(NarrowWire, TakesNothingFromTheSum) {
  for (const char* row : {"sgp", "d_psgd"})
    in_local_world(
        5,
        [&](comm::Communicator& c) {
          Trainee t({.size = 1000, .zero_gradient = true}, row, options({{"final-average", "false"}}), c);
          copy(t.x, thirds(c.rank()));
          t.strategy->start(t.worker);
          const double before = sum_over_ranks(c, t.strategy->contribution(t.worker));
          for (int64_t k = 0; k < 200; ++k) t.step(k);
          EXPECT_NEAR(sum_over_ranks(c, t.strategy->contribution(t.worker)), before, before * 1e-6) << row;
        },
        kNarrow);
}

TEST(NarrowWire, PushSumComesToTheTrueMean) {
  in_local_world(
      4,
      [](comm::Communicator& c) {
        comm::AveragingOptions o{.rounds = 100};
        o.graph = [](int n, uint32_t) {
          comm::TopologyOptions one;
          one.peers = 1;
          return comm::make_topology("ring", one, n);
        };
        const auto r = comm::average(c, thirds(c.rank()), o);
        EXPECT_NEAR(r.epochs[0].end.x, r.epochs[0].begin.x, 1e-6 * r.epochs[0].begin.x);
        EXPECT_LT(r.error, 0.02);  // each is as near as one rounding leaves it
      },
      kNarrow);
}

}  // namespace
}  // namespace skein
