// AD-PSGD: pairs that average while they compute, replays, and a worker that is stopped.
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <random>

#include "tests/support/files.h"
#include "tests/support/peek.h"
#include "tests/support/roles.h"
#include "tests/support/sim_trainee.h"
#include "tests/support/strategy_cases.h"

namespace skein {
namespace {

using namespace trainee;

double sum(const std::vector<std::vector<float>>& models, size_t i) {
  double s = 0;
  for (const auto& x : models) s += double(x[i]);
  return s;
}

TEST(AdPsgd, ConservesThePairsSumWhileAllComputeAndAverage) {
  for (const char* topology : {"bipartite-exponential", "bipartite-linear", "ring", "linear"})
    for (const int n : {8, 5}) {
      const Problem p{.size = 3000, .zero_gradient = true, .start_spread = 1};
      const auto h = train(p, "ad-psgd", options({{"topology", topology}, {"peers", "1"}}), n, 200);
      for (size_t i = 0; i < size_t(p.size); i += 97)
        EXPECT_NEAR(sum(h.back(), i), sum(h.front(), i), 2e-4) << topology << ' ' << n;
    }
}

void expect_consensus(const optim::Options& o, int n, int steps) {
  const Case c{&optim::strategy_row("ad-psgd"), "", o};
  const auto [begin, end] =
      begin_and_end({.zero_gradient = true, .pause = 5e-4, .start_spread = 1}, c, n, steps);
  for (size_t i = 0; i < end[0].size(); ++i)
    for (const auto& x : end) EXPECT_NEAR(x[i], sum(begin, i) / n, 1e-3) << i << " of " << n;
}

// With one neighbor only, the two pairs of four workers would never hear of each other.
TEST(AdPsgd, OnARingAsksBothNeighborsInTurn) {
  expect_consensus(options({{"topology", "ring"}, {"peers", "1"}}), 4, 40);
}

// With an odd number of workers, no worker waits for the one that the graph has more.
TEST(AdPsgd, OfAnOddNumberOfWorkersComesToTheMean) {
  for (const int n : {3, 5, 7}) expect_consensus({}, n, 80);
  expect_consensus(options({{"topology", "ring"}, {"peers", "1"}}), 3, 80);
}

TEST(AdPsgd, OfCodedModelsComesToTheMean) {
  for (const auto& [wire, steps] : {std::pair("int8", 60), {"int4", 60}, {"topk:0.3", 150}})
    for (const int n : {4, 3}) expect_consensus(options({{"wire", wire}}), n, steps);
}

// Gradients taken at snapshots are applied to models that have changed since: none is lost,
// none counts twice.
TEST(AdPsgd, AppliesEveryGradientOnce) {
  const int n = 6, steps = 150;
  std::vector<std::vector<float>> models(static_cast<size_t>(n));
  std::vector<double> given(static_cast<size_t>(n));
  in_local_world(n, [&](comm::Communicator& c) {
    Trainee t({.size = 500}, "ad-psgd", {}, c);
    const size_t r = size_t(c.rank());
    t.worker.oracle = [&](const optim::Slices&) {
      const float g = float(int(given[r] * 16 + double(r)) % 7 - 3) / 16;
      fill(t.g, g);
      given[r] += double(g);
      return Tensor::of<float>({1}, {0.f});
    };
    for (int64_t k = 0; k < steps; ++k) t.step(k);
    t.strategy->settle(t.worker);
    models[r] = values(t.x);
  });
  double all = 0;
  for (double g : given) all += g;
  for (size_t i : {0, 123, 499}) EXPECT_NEAR(sum(models, i), -0.1 * all, 2e-4);
}

TEST(AdPsgd, TwoTakeTheirMeanTheSameBitsOnBoth) {
  const Problem p{.size = 1001, .zero_gradient = true, .start_spread = 0.37f};
  const auto h = train(p, "ad-psgd", {}, 2, 1);
  EXPECT_EQ(h[1][0], h[1][1]);
  for (size_t i = 0; i < 1001; ++i) EXPECT_EQ(h[1][0][i], 0.5f * h[0][0][i] + 0.5f * h[0][1][i]);
}

// Rank 0 computes one gradient for as long as rank 1 needs for twenty exchanges with it.
TEST(AdPsgd, ThePassivePartnerAnswersWhileItComputes) {
  std::atomic<bool> enough{false};
  in_local_world(2, [&](comm::Communicator& c) {
    Trainee t({.size = 100, .start_spread = 1}, "ad-psgd", {}, c);
    const auto oracle = t.worker.oracle;
    t.worker.oracle = [&](const optim::Slices& slices) {
      const auto end = comm::Clock::now() + std::chrono::seconds(10);
      while (c.rank() == 0 && !enough && comm::Clock::now() < end) std::this_thread::yield();
      return oracle(slices);
    };
    for (int64_t k = 0; k < (c.rank() == 0 ? 1 : 20); ++k) t.step(k);
    if (c.rank() == 1) {
      EXPECT_GE(Peek(*t.strategy).numbers.at("exchanges"), 15);
      enough = true;
    }
    t.strategy->settle(t.worker);
  });
  EXPECT_TRUE(enough);
}

// An exchange is under way while its worker computes, and only what it then still waits for
// counts as waiting.
TEST(AdPsgd, ExchangesAreTransfersOfWhoeverAsksForThem) {
  in_local_world(2, [&](comm::Communicator& c) {
    Trainee t({.size = 1000, .start_spread = 1}, "ad-psgd", {}, c);
    const auto oracle = t.worker.oracle;
    t.worker.oracle = [&](const optim::Slices& slices) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return oracle(slices);
    };
    c.meter().turn(true);
    for (int64_t k = 0; k < 10; ++k) t.step(k);
    const comm::Traffic traffic = c.meter().traffic();
    t.strategy->settle(t.worker);
    if (c.rank() == 1)
      EXPECT_GT(traffic.in_flight, traffic.waited);
    else
      EXPECT_EQ(traffic.in_flight, 0);
  });
}

// Each worker hears at another moment that the epoch ends, and none waits for messages any more; but what
// happens to one of a pair happens to the other.
TEST(AdPsgd, KeepsTheSumWhenTheMembershipChanges) {
  for (uint64_t seed = 1; seed <= 10; ++seed)
    for (const char* wire : {"fp32", "bf16", "int8"}) {
      const int n = 2 + int(seed % 5);
      int come = 0;
      std::vector<std::vector<float>> before(static_cast<size_t>(n)), after = before;
      const auto one = [&](comm::Communicator& c) {
        std::mt19937_64 random(100 * seed + uint64_t(c.rank()));
        const auto work = [&] { spend(std::uniform_real_distribution<>(0, 0.05)(random)); };
        Trainee t({.size = 40, .zero_gradient = true, .start_spread = 0.37f}, "ad-psgd",
                  options({{"wire", wire}}), c);
        before[size_t(c.rank())] = values(t.x);
        t.worker.oracle = [&, oracle = t.worker.oracle](const optim::Slices& slices) {
          work();
          return oracle(slices);
        };
        for (int64_t k = 0; k < 5; ++k) t.step(k);
        c.transport().mailbox().end_epoch("the membership is changing");
        work();
        after[size_t(c.rank())] = Peek(*t.strategy).vectors.at("x");
        for (++come; come < n;) spend(0.05);
      };
      const Weather weather{.seed = seed, .latency = 0.02, .jitter = 0.05};
      in_sim_world(n, weather, one, {.deadline = 20, .wire = wire == std::string("bf16") ? kBF16 : kF32});
      EXPECT_NE(before, after);
      for (size_t i = 0; i < 40; i += 7)
        EXPECT_NEAR(sum(after, i), sum(before, i), 1e-5) << "seed " << seed << ", " << n << ", " << wire;
    }
}

TEST(AdPsgd, RefusesGraphsThatAreNotPairsOfOddAndEven) {
  for (const char* topology : {"exponential", "complete", "random", "base"})
    EXPECT_THROW(optim::make_strategy("ad-psgd", options({{"topology", topology}}), 6), BadOption)
        << topology;
  EXPECT_THROW(optim::make_strategy("ad-psgd", options({{"peers", "2"}}), 8), BadOption);
  for (int n : {1, 2, 3, 4, 5, 16}) EXPECT_NO_THROW(optim::make_strategy("ad-psgd", {}, n)) << n;
  EXPECT_THROW(optim::make_strategy("ad-psgd", options({{"wire", "int8"}, {"bn-policy", "mix"}}), 2),
               BadOption);
}

// ---- record and replay
// ---------------------------------------------------------------------------------------
void expect_replays(const std::string& flag, const std::string& value) {
  const testing::ScratchDir folder;
  const int n = 4, steps = 24;
  const Problem p{.momentum = 0.9f, .decay = 0.01f, .noise = 1, .curvature_spread = 1, .start_spread = 0.25f};
  std::map<int64_t, std::vector<optim::Snapshot>> saved;
  const auto run = [&](const char* mode, int64_t from, int slow) {
    const auto o = options({{mode, folder / "order"}, {"exact-every", "10"}, {flag, value}});
    History h(size_t(steps), std::vector<std::vector<float>>(static_cast<size_t>(n)));
    std::mutex mutex;
    in_local_world(n, [&](comm::Communicator& c) {
      Trainee t(p, "ad-psgd", o, c);
      const size_t r = size_t(c.rank());
      const optim::Walk walk = [&](Archive& a) { t.visit(a); };
      if (from > 0) saved.at(from)[r].restore(walk), t.strategy->settle(t.worker);  // as before an evaluation
      for (int64_t k = from; k < steps;) {
        if (c.rank() == slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        t.step(k++);
        if (k % 8 == 0) t.strategy->settle(t.worker);
        h[size_t(k - 1)][r] = values(t.x);
        const std::lock_guard lock(mutex);
        if (k % 8 == 0 && mode == std::string("record")) {
          saved[k].resize(size_t(n));
          saved[k][r].take(walk);
        }
      }
    });
    return h;
  };
  const History recorded = run("record", 0, 2);
  for (int slow : {0, 1, 3}) EXPECT_EQ(run("replay", 0, slow), recorded) << slow;
  for (int64_t from : {8, 16}) {
    const History rest = run("replay", from, 1);
    for (size_t k = size_t(from); k < size_t(steps); ++k) EXPECT_EQ(rest[k], recorded[k]) << from << ' ' << k;
  }
}
TEST(AdPsgd, RepeatsARecordedRunBitForBitFromAnyOfItsCheckpoints) { expect_replays("bn-policy", "mix"); }
TEST(AdPsgd, RepeatsARecordedRunOfCodedModels) { expect_replays("wire", "int4"); }

// ---- a worker that is stopped
// ----------------------------------------------------------------------------------
constexpr int kWorkers = 8;
struct Board {  // in memory that the test and its workers share
  std::atomic<int64_t> steps[kWorkers];
  std::atomic<bool> stop;
};
Board& board(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR);
  void* at = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(fd >= 0 && at != MAP_FAILED, "no board at", path);
  ::close(fd);
  return *static_cast<Board*>(at);
}

// Zero gradients that take 5 ms, until told to stop; nothing of the sum may be lost.
void train_until_stopped(comm::Exchange& e, const std::string& path) {
  Board& b = board(path);
  const auto transport = comm::connect(e, comm::way("shared"));
  comm::Communicator c(*transport, {.deadline = 30});
  Trainee t({.size = 1000, .zero_gradient = true, .pause = 5e-3, .start_spread = 1}, "ad-psgd", {}, c);
  const double before = double(t.x.data<float>()[0]);
  for (int64_t k = 0; !b.stop; ++k) t.step(k), ++b.steps[c.rank()];
  c.set_deadline(comm::kForever);
  t.strategy->settle(t.worker);
  const Tensor sum = Tensor::of<float>({2}, {float(before), t.x.data<float>()[0]});
  c.all_reduce(sum).wait();
  CHECK(std::abs(sum.data<float>()[0] - sum.data<float>()[1]) < 1e-3, sum.data<float>()[0],
        sum.data<float>()[1]);
}
const comm::AddRole kTrain("train_until_stopped", train_until_stopped);

TEST(AdPsgd, OneStoppedWorkerHoldsUpNobodyElse) {
  const testing::ScratchDir folder;
  const std::string path = folder / "board";
  std::ofstream(path) << std::string(sizeof(Board), '\0');
  Board& b = board(path);
  for (const auto& [stopped, seconds] : {std::pair(2, 3.0), std::pair(5, 1.0)}) {  // it answers; it asks
    b.stop = false;
    for (auto& s : b.steps) s = 0;
    comm::Processes p("train_until_stopped", kWorkers, path);
    const auto steps_in = [&](double seconds) {
      std::vector<int64_t> before, now;
      for (const auto& s : b.steps) before.push_back(s);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      for (int r = 0; r < kWorkers; ++r) now.push_back(b.steps[r] - before[size_t(r)]);
      return now;
    };
    const auto end = comm::Clock::now() + std::chrono::seconds(20);
    for (const auto& s : b.steps)
      while (s < 5 && comm::Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto before = steps_in(1);
    p.signal(stopped, SIGSTOP);
    const auto during = steps_in(seconds);
    p.signal(stopped, SIGCONT);
    int at_speed = 0;
    for (int r = 0; r < kWorkers; ++r)
      at_speed += r != stopped && double(during[size_t(r)]) / seconds > 0.5 * double(before[size_t(r)]);
    EXPECT_GE(at_speed, kWorkers - 2) << "of worker " << stopped;
    EXPECT_LE(during[size_t(stopped)], 1);
    b.stop = true;
    comm::expect_all_end_well(p);
  }
}

}  // namespace
}  // namespace skein
