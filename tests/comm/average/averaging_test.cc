// Averaging over ranks that are threads: bad weather, lost messages, those who leave, those who are lost.
#include "comm/average/averaging.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/communicator/numbers.h"
#include "comm/topology/contraction.h"
#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

constexpr int64_t kSize = 300;

float sample(Rank r, int64_t i) { return std::sin(float(3 * r + 1) * float(i + 1)); }
Tensor vector_of(Rank r) {
  Tensor x({kSize});
  for (int64_t i = 0; i < kSize; ++i) x.data<float>()[i] = sample(r, i);
  return x;
}
double mean_of(const std::vector<Rank>& ranks, int64_t i) {
  double sum = 0;
  for (const Rank r : ranks) sum += sample(r, i);
  return sum / double(ranks.size());
}
double total_of(int n) {
  double sum = 0;
  for (Rank r = 0; r < n; ++r)
    for (int64_t i = 0; i < kSize; ++i) sum += sample(r, i);
  return sum;
}

AveragingOptions over(const std::string& graph, int64_t rounds, Averaging algorithm = Averaging::kPushSum) {
  AveragingOptions o{.algorithm = algorithm, .rounds = rounds};
  o.graph = [graph](int n, uint32_t epoch) {
    TopologyOptions t;
    t.epoch = epoch;
    return make_topology(epoch > 1 && graph == "bipartite-exponential" ? "random" : graph, t, n);
  };
  return o;
}

// Another transport with some of its doors broken: `fate` sees every message and says whether it goes out.
class Broken final : public Transport {
 public:
  Broken(std::unique_ptr<Transport> inner, std::function<bool(Rank, const Header&)> fate)
      : inner_(std::move(inner)), fate_(std::move(fate)) {
    for (Rank r = 0; r < inner_->size(); ++r) doors_.push_back(std::make_unique<Door>(*this, r));
  }
  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Endpoint& to(Rank r) override { return *doors_.at(size_t(r)); }
  Mailbox& mailbox() override { return inner_->mailbox(); }
  void wait(const Key& k, Clock::time_point until) override { inner_->wait(k, until); }

 private:
  struct Door final : Endpoint {
    Door(Broken& t, Rank peer) : t(t), peer(peer) {}
    const char* name() const override { return "broken"; }
    void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
      if (t.fate_(peer, h)) t.inner_->to(peer).send(h, std::move(payload), deadline);
    }
    Broken& t;
    const Rank peer;
  };
  const std::unique_ptr<Transport> inner_;
  const std::function<bool(Rank, const Header&)> fate_;
  std::vector<std::unique_ptr<Door>> doors_;
};

// Epochs of a membership of ranks that are threads. The transports of all epochs live until the end.
class Epochs {
 public:
  explicit Epochs(std::vector<std::unique_ptr<Transport>> first) {
    for (Rank r = 0; r < Rank(first.size()); ++r) first_.members.push_back({MemberId(100 + r), "card"});
    worlds_[first_.epoch] = std::move(first);
  }
  // As average(), by rank `me` of the first epoch.
  AveragingResult average(Rank me, const Tensor& x, const AveragingOptions& o, double deadline = 20) {
    AveragingRun run(me, x, o);
    std::vector<std::unique_ptr<Communicator>> past;
    View v = first_;
    std::unique_ptr<Succession> begun;
    for (;;) {
      Transport& t = transport(v, MemberId(100 + me));
      past.push_back(std::make_unique<Communicator>(t, CommunicatorOptions{.deadline = deadline}));
      Council council(t, options(v, me), std::move(begun));
      if (run.epoch(*past.back(), &council)) {
        AveragingResult r = run.finish();
        if (!r.left) council.end_run({.step = r.rounds}), r.living->barrier();
        return r;
      }
      v = council.next(deadline);
      council.connected(transport(v, MemberId(100 + me)), v);
      begun = council.release(v);
    }
  }

 private:
  static CouncilOptions options(const View& v, Rank me) {
    return {.me = MemberId(100 + me),
            .now = v,
            .card = "card",
            .is_gone = [](const std::string&) { return true; },
            .ends_waits = false};
  }
  Transport& transport(const View& v, MemberId me) {
    const std::lock_guard lock(mutex_);
    auto& world = worlds_[v.epoch];
    if (world.empty()) {
      world = local_world(int(v.members.size()));
      for (auto& t : world) t->mailbox().membership().set_epoch(v.epoch);
    }
    return *world.at(size_t(v.rank(me)));
  }
  std::mutex mutex_;
  View first_;
  std::map<uint32_t, std::vector<std::unique_ptr<Transport>>> worlds_;
};

// f(rank) for each of n.
void on_ranks(int n, const std::function<void(Rank)>& f) {
  on_threads(n, [&](Rank r) {
    omp_set_num_threads(1);
    f(r);
  });
}

TEST(Averaging, ContractsAsTheGraphPromises) {
  for (const char* graph : {"ring", "exponential", "random"}) {
    const auto curve = contraction_curve(*over(graph, 1).graph(5, 1), 6);
    in_local_world(5, [&](Communicator& c) {
      const AveragingResult r = average(c, vector_of(c.rank()), over(graph, 6));
      ASSERT_EQ(r.trace.size(), 7u);
      for (size_t q = 1; q < 7; ++q)
        EXPECT_LE(r.trace[q].rms, r.trace[0].rms * curve[q] + 1e-6) << graph << q;
    });
  }
}

TEST(Averaging, EveryMessageCountsOnceInAnyWeather) {
  for (const Averaging algorithm : {Averaging::kPushSum, Averaging::kPairwise}) {
    const sim::Weather weather{
        .seed = 5, .latency = 1e-3, .jitter = 0.02, .loss = 0.3, .duplication = 0.3, .overtaking = true};
    sim::in_sim_world(4, weather, [&](Communicator& c) {
      const Tensor x = vector_of(c.rank());
      const AveragingResult r = average(c, x, over("bipartite-exponential", 30, algorithm));
      EXPECT_NEAR(r.epochs[0].end.w, 4, 1e-6);
      EXPECT_NEAR(r.epochs[0].end.x, total_of(4), 1e-4);
      for (int64_t i = 0; i < kSize; ++i) ASSERT_NEAR(x.data<float>()[i], mean_of({0, 1, 2, 3}, i), 1e-5);
    });
  }
}

TEST(Averaging, AShareThatNeverComesTakesItsMassAndNothingElse) {
  auto world = local_world(3);
  for (auto& t : world)
    t = std::make_unique<Broken>(std::move(t), [me = t->rank()](Rank to, const Header& h) {
      return !(me == 0 && to == 1 && h.tag == 1 && h.step == 2);  // push-sum's shares have tag 1
    });
  in_world(world,
           [](Communicator& c) {
             const Tensor x = vector_of(c.rank());
             const AveragingResult r = average(c, x, over("ring", 60));
             EXPECT_EQ(r.skipped, c.rank() == 1 ? 1 : 0);
             EXPECT_NEAR(r.epochs[0].end.w, 2.5, 1e-6);  // rank 0 had w = 1 and gave half of it
             const AveragingResult::Point end = r.trace.back();
             EXPECT_LT(end.rms, r.trace[0].rms);  // still near the mean, though not on it
             const auto all = gather_numbers(c, {x.data<float>()[0]});
             EXPECT_NEAR(all[0][0], all[1][0], 1e-5);  // and they agree
             EXPECT_NEAR(all[0][0], all[2][0], 1e-5);
           },
           {.deadline = 1});
}

TEST(Averaging, WhoLeavesHandsOverWhatItHolds) {
  for (const Averaging algorithm : {Averaging::kPushSum, Averaging::kPairwise, Averaging::kAllReduce})
    for (Rank leaver : {0, 2}) {
      Epochs epochs(local_world(4));
      on_ranks(4, [&](Rank me) {
        const Tensor x = vector_of(me);
        AveragingOptions o =
            over(algorithm == Averaging::kPairwise ? "bipartite-exponential" : "ring", 40, algorithm);
        int asked = 0;
        o.wish = [&] { return me == leaver && ++asked == 2 ? Wish::kLeave : Wish::kGoOn; };
        const AveragingResult r = epochs.average(me, x, o);
        EXPECT_EQ(r.left, me == leaver);
        if (r.left) return;
        ASSERT_EQ(r.epochs.size(), 2u);
        EXPECT_EQ(r.epochs[1].members.size(), 3u);
        EXPECT_NEAR(r.epochs[0].end.w, 4, 1e-6);  // nothing went with it
        EXPECT_NEAR(r.epochs[0].end.x, total_of(4), 1e-4);
        EXPECT_NEAR(r.epochs[1].begin.w, 3, 1e-6);
        EXPECT_NEAR(r.epochs[1].end.w, 3, 1e-6);
        EXPECT_NEAR(r.epochs[1].end.x, r.epochs[1].begin.x, 1e-4);
        EXPECT_LT(r.error, 1e-5);
        EXPECT_EQ(r.rounds, 40);
        EXPECT_EQ(r.living->size(), 3);
      });
    }
}

TEST(Averaging, DoublesAreAveragedInDoubleAlsoWhenOneLeaves) {
  constexpr double kAbove = 1e-9;  // nothing of it is left in fp32
  for (const Averaging algorithm : {Averaging::kPushSum, Averaging::kPairwise, Averaging::kAllReduce}) {
    Epochs epochs(local_world(4));
    on_ranks(4, [&](Rank me) {
      const Tensor x = bits_of({1 + kAbove * double(me), 1e300 * double(me)});
      AveragingOptions o =
          over(algorithm == Averaging::kPairwise ? "bipartite-exponential" : "ring", 120, algorithm);
      int asked = 0;
      o.wish = [&] { return me == 2 && ++asked == 2 ? Wish::kLeave : Wish::kGoOn; };
      const AveragingResult r = epochs.average(me, x, o);
      if (r.left) return;
      EXPECT_NEAR(r.epochs[0].end.x / 6e300, 1, 1e-14) << "nothing went with it";
      EXPECT_NEAR(r.epochs[1].end.x / r.epochs[1].begin.x, 1, 1e-14);
      EXPECT_LT(r.error, 1e288);
      const std::vector<double> mine = numbers_of(x);
      for (const auto& theirs : gather_numbers(*r.living, mine))
        for (size_t i = 0; i < mine.size(); ++i) EXPECT_NEAR(theirs[i] / mine[i], 1, 1e-14);
      EXPECT_GT(mine[0], 1 + kAbove);
      EXPECT_LT(mine[0], 1 + 2 * kAbove);
    });
  }
}

// The lost one falls silent in gossip 3, between two shares; the others are told so, as a transport would.
TEST(Averaging, GoesOnWithoutTheLostAndKeepsWhatItHadGiven) {
  for (const char* graph : {"ring", "complete", "random"})
    for (Rank victim : {0, 3}) {
      auto world = local_world(5);
      std::vector<Mailbox*> boxes;
      for (auto& t : world) boxes.push_back(&t->mailbox());
      std::atomic<bool> dead{false};
      for (auto& t : world)
        t = std::make_unique<Broken>(std::move(t), [&, me = t->rank()](Rank, const Header& h) {
          if (me == victim && h.tag == 1 && h.step == 3 && !dead.exchange(true))
            for (Mailbox* b : boxes)
              if (b->owner() != victim) b->lose(victim, "it was killed", true);
          if (me == victim && dead) throw Error("killed");
          return true;
        });
      Epochs epochs(std::move(world));
      on_ranks(5, [&](Rank me) {
        const Tensor x = vector_of(me);
        if (me == victim) {
          EXPECT_THROW(epochs.average(me, x, over(graph, 40), 3), Error);
          return;
        }
        const AveragingResult r = epochs.average(me, x, over(graph, 40), 3);
        ASSERT_EQ(r.epochs.size(), 2u);
        const AveragingEpoch &first = r.epochs[0], &second = r.epochs[1];
        EXPECT_EQ(second.members.size(), 4u);
        EXPECT_EQ(second.number, 2u);
        EXPECT_NEAR(first.begin.w, 5, 1e-6);
        EXPECT_GT(first.end.w, 3);  // the living hold their own, and what they had sent each other
        EXPECT_LT(first.end.w, 5);
        EXPECT_NEAR(second.begin.w, 4, 1e-6);
        EXPECT_NEAR(second.end.w, 4, 1e-5);
        EXPECT_NEAR(second.end.x, second.begin.x, 1e-3);
        EXPECT_LT(r.error, 1e-5) << graph;
        EXPECT_NEAR(r.trace.back().round, 40, 0);
      });
    }
}

TEST(Averaging, OneWhoStopsStopsAllAtTheSameRound) {
  in_local_world(3, [](Communicator& c) {
    AveragingOptions o = over("ring", 1000000);
    int asked = 0;
    o.wish = [&] { return c.rank() == 1 && ++asked >= 10 ? Wish::kStop : Wish::kGoOn; };
    const AveragingResult r = average(c, vector_of(c.rank()), o);
    EXPECT_TRUE(r.stopped);
    EXPECT_EQ(r.rounds, 9);
  });
}

TEST(Averaging, SaysWhenEverybodyIsAliveAndOneDoesNotAnswer) {
  in_local_world(2,
                 [](Communicator& c) {
                   if (c.rank() == 1) return;
                   try {
                     average(c, vector_of(0), over("ring", 5));
                     FAIL();
                   } catch (const Error& e) {
                     EXPECT_NE(std::string(e.what()).find("rank 1"), std::string::npos) << e.what();
                   }
                 },
                 {.deadline = 0.5});
}

}  // namespace
}  // namespace skein::comm
