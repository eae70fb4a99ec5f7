// Steps with all workers at once, steps of one worker a machine, then messages between hosts: round trips,
// all at once, and all at once beside steps.
#include "apps/plan/probe.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <set>

#include "apps/base/host.h"
#include "apps/base/together.h"
#include "apps/plan/computing.h"
#include "comm/average/ring_exchange.h"
#include "comm/join/sockets.h"
#include "engine/loops/moved_bytes.h"
#include "nn/slices.h"

namespace skein::apps {
namespace {

constexpr double kSeconds = 6;          // of steps with all workers
constexpr int kFewest = 5, kMost = 40;  // such steps
constexpr double kExchange = 1;         // seconds of an exchange between all hosts, at most about
constexpr double kExchanging = 4;       // of all exchanges of a kind: single ones differ by a tenth
constexpr int kFewestExchanges = 4, kMostExchanges = 24;
constexpr int64_t kFew = 256 << 10;  // bytes of a message that tells slow links from fast ones:
constexpr double kSlow = 5e-3;       // on slow ones it takes longer than this,
constexpr int64_t kSome = 1 << 20, kMany = 16 << 20;  // and many bytes would take too long

double middle_step(const std::vector<StepAndPass>& steps) {
  std::vector<double> all;
  for (const StepAndPass& s : steps) all.push_back(s.training());
  return middle(all);
}

// The mean of one kind of work, or of all, since a run takes the sum of its steps, and those of busy machines
// lie unevenly around the middle one. A step that something has held up is cut to three times that one.
double mean_of(const std::vector<StepAndPass>& steps, const std::function<double(const StepAndPass&)>& work) {
  constexpr double kHeldUp = 3;  // times the middle step
  const double most = kHeldUp * middle_step(steps);
  double sum = 0;
  for (const StepAndPass& s : steps) sum += work(s) * std::min(1.0, most / std::max(s.training(), 1e-9));
  return sum / double(steps.size());
}

// Of steps from those before them, since the speed of machines drifts; from the quartiles, so that a step
// which something has held up counts for nothing.
double spread_of(const std::vector<StepAndPass>& steps) {
  std::vector<double> changes;
  for (size_t i = 1; i < steps.size(); ++i)
    changes.push_back(
        std::log(std::max(steps[i].training(), 1e-9) / std::max(steps[i - 1].training(), 1e-9)));
  std::sort(changes.begin(), changes.end());
  constexpr double kQuartiles = 1.349;  // between them, in standard deviations of a normal law
  return (changes[changes.size() * 3 / 4] - changes[changes.size() / 4]) / kQuartiles / std::numbers::sqrt2;
}

std::vector<std::string> said_by_all(comm::Communicator& comm, const std::string& mine) {
  std::vector<std::string> all;
  for (comm::Rank r = 0; r < comm.size(); ++r) all.push_back(comm::broadcast_text(comm, mine, r));
  return all;
}

// Who they are and where. Hosts that share a name, as containers may, are numbered.
std::vector<ProbedWorker> everybody(comm::Communicator& comm) {
  const std::string network = comm::host_identity();
  const auto names = said_by_all(comm, host_name()), networks = said_by_all(comm, network);
  std::vector<ProbedWorker> all(names.size());
  for (size_t r = 0; r < all.size(); ++r)
    all[r].network = networks[r], all[r].machine = networks[r].substr(0, networks[r].find('/'));
  for (size_t r = 0; r < all.size(); ++r) {
    std::vector<std::string> of_name;  // its networks
    for (size_t q = 0; q < all.size(); ++q)
      if (names[q] == names[r] && std::find(of_name.begin(), of_name.end(), networks[q]) == of_name.end())
        of_name.push_back(networks[q]);
    const auto place = std::find(of_name.begin(), of_name.end(), networks[r]) - of_name.begin();
    all[r].host = of_name.size() == 1 ? names[r] : text(names[r], '-', place);
  }
  return all;
}

void compute(Probed& p, Computing& computing, const Member& me) {
  const auto warm = computing.steps(3);
  double slowest = 0;
  for (const auto& one : comm::gather_numbers(me.comm, {warm.back().training()}))
    slowest = std::max(slowest, one[0]);
  const int count = std::clamp(int(kSeconds / std::max(slowest, 1e-6)), kFewest, kMost);
  me.comm.barrier();
  const auto steps = computing.steps(count);
  const auto timeline = computing.timeline(kFewest);
  me.comm.barrier();
  const std::string& machine = p.workers[size_t(me.rank)].machine;
  int first = 0, here = 0;
  for (int r = me.world - 1; r >= 0; --r)
    if (p.workers[size_t(r)].machine == machine) first = r, ++here;
  double crowded = 1, spread = spread_of(steps);
  if (first == me.rank && here > 1) {
    const auto alone = computing.steps(std::max(kFewest, count / 2));
    crowded = std::max(1.0, mean_of(steps, &Seconds::training) / mean_of(alone, &Seconds::training));
    spread = spread_of(alone);
  }
  me.comm.barrier();
  const auto rows = comm::gather_numbers(
      me.comm, {mean_of(steps, &Seconds::data), mean_of(steps, &Seconds::forward),
                mean_of(steps, &Seconds::backward), mean_of(steps, &Seconds::update), spread, crowded,
                double(first), mean_of(steps, &StepAndPass::pass) / double(computing.moved_by_pass()),
                double(computing.moved_by_update())});
  for (size_t r = 0; r < rows.size(); ++r) {
    ProbedWorker& w = p.workers[r];
    w.loading = rows[r][0], w.forward = rows[r][1], w.backward = rows[r][2], w.update = rows[r][3];
    w.byte = rows[r][7], w.updated = rows[r][8];
    const std::vector<double>& of_machine = rows[size_t(rows[r][6])];
    w.spread = of_machine[4], w.crowded = of_machine[5];
  }
  p.ghost.timeline.assign(timeline.size(), 0);
  for (const auto& one : comm::gather_numbers(me.comm, timeline))
    for (size_t k = 0; k < one.size(); ++k) p.ghost.timeline[k] += one[k] / double(me.world);
}

std::vector<comm::LinkTimes> test(comm::Communicator& c) {
  auto all = comm::test_links(c, {.bytes = {4, kFew}, .repeats = 5, .short_repeats = 21});
  const auto& some = all.back().seconds;
  const bool slow = *std::max_element(some.begin(), some.end()) > kSlow;
  for (auto& t : comm::test_links(c, {.bytes = {slow ? kSome : kMany}, .repeats = 5})) all.push_back(t);
  return all;
}

void time_links(Probed& p, const Member& me) {
  std::set<std::string> seen;
  for (comm::Rank r = 0; r < me.world; ++r)
    if (seen.insert(p.workers[size_t(r)].network).second) p.fronts.push_back(r);
  const auto takes_part = [&](const std::vector<comm::Rank>& g) {
    return std::find(g.begin(), g.end(), me.rank) != g.end();
  };
  if (p.fronts.size() > 1 && takes_part(p.fronts)) p.between = test(*me.comm.group(p.fronts));
  me.comm.barrier();
  for (const comm::Rank front : p.fronts)  // the first host that has two workers
    for (comm::Rank r = front + 1; r < me.world; ++r) {
      if (p.workers[size_t(r)].network != p.workers[size_t(front)].network) continue;
      const std::vector<comm::Rank> pair{front, r};
      const auto times = takes_part(pair) ? test(*me.comm.group(pair)) : std::vector<comm::LinkTimes>();
      std::vector<double> mine;
      for (const auto& t : times) mine.push_back(double(t.bytes)), mine.push_back(t.seconds[1]);
      mine.resize(6);
      const auto rows = comm::gather_numbers(me.comm, mine);
      for (size_t i = 0; i < 6; i += 2)
        p.within.push_back({int64_t(rows[size_t(front)][i]), 0, {0, rows[size_t(front)][i + 1], 0, 0}});
      return;
    }
}

// Seconds of a byte on the slowest link between two hosts.
double slowest_byte(const Probed& p) {
  const comm::LinkTimes &few = p.between.front(), &most = p.between.back();
  double byte = 1e-12;
  for (size_t i = 0; i < few.seconds.size(); ++i)
    byte = std::max(byte, (most.seconds[i] - few.seconds[i]) / double(most.bytes - few.bytes));
  return byte;
}

// Adds the times of so many steps.
void add_steps(std::vector<double>& all, Computing& computing, int count) {
  for (int i = 0; i < count; ++i) {
    const double from = clock_seconds();
    computing.step();
    all.push_back(clock_seconds() - from);
  }
}

// The same where this sends in each step, to arrive by the end of the step after it; so the first of all,
// beside which nothing arrives, is one more, and does not count. What it does with vectors, each byte in so
// many seconds, is no part of the times: it is known, and simulated, for itself.
void add_steps_beside(comm::RingExchange& ring, std::vector<double>& all, Computing& computing, int count,
                      double byte) {
  ring.send();
  computing.step();
  for (int i = 0; i < count; ++i) {
    const double from = clock_seconds();
    MovedBytes moved;  // but for the step's, which counts its own
    ring.send();
    computing.step();
    ring.receive();
    all.push_back(clock_seconds() - from - double(moved.take()) * byte);
  }
  ring.receive();
}

double slowest_step(const Probed& p) {
  double slowest = 0;
  for (const ProbedWorker& w : p.workers) slowest = std::max(slowest, w.step());
  return slowest;
}

// The same on all ranks, in place of what each has measured: the mean of some of them.
void agree(const std::vector<comm::Rank>& some, const Member& me,
           std::initializer_list<ProbedExchange*> all) {
  for (ProbedExchange* one : all) {
    const auto rows = comm::gather_numbers(me.comm, {double(one->bytes), one->seconds, double(one->pieces)});
    *one = {};
    for (const comm::Rank r : some) {
      one->bytes = int64_t(rows[size_t(r)][0]), one->pieces = int64_t(rows[size_t(r)][2]);
      one->seconds += std::max(0.0, rows[size_t(r)][1]) / double(some.size());
    }
  }
}

// The fronts but those whose steps take less than half as long as the slowest one's: these wait in the ring
// for slower neighbors, and the time of that is not the processor's. Smaller differences vanish in the step
// for which a message may travel, and workers that share processors always differ.
std::vector<comm::Rank> slow_fronts(const Probed& p, const Member& me, double step) {
  constexpr double kWaiting = 0.5;
  const auto steps = comm::gather_numbers(me.comm, {step});
  double slowest = 0;
  for (const comm::Rank front : p.fronts) slowest = std::max(slowest, steps[size_t(front)][0]);
  std::vector<comm::Rank> slow;
  for (const comm::Rank front : p.fronts)
    if (steps[size_t(front)][0] >= kWaiting * slowest) slow.push_back(front);
  return slow;
}

// All hosts send at once while nobody computes.
void exchange(Probed& p, int64_t model, int64_t slice, const Member& me, comm::Communicator* between) {
  if (between) {
    const double byte = slowest_byte(p), pause = slowest_step(p);
    const int64_t most = std::clamp(int64_t(kExchange / byte), int64_t(1024), kMany) / 4 * 4;
    const auto repeats = [&](double seconds) {
      return int(std::clamp<double>(kExchanging / seconds, kFewestExchanges, kMostExchanges));
    };
    const auto time_sum = [&](ProbedExchange& sum) {
      sum.bytes = std::min(model, most);
      sum.seconds = comm::seconds_of_sum(*between, sum.bytes, sum.pieces,
                                         repeats(2 * double(sum.bytes) * byte + pause), pause);
    };
    time_sum(p.sum);
    p.slices.pieces = std::max<int64_t>(1, p.sum.bytes / slice);
    if (p.slices.pieces > 1) time_sum(p.slices);
    p.gossip.bytes = std::min(model, most / p.neighbors() / 4 * 4);
    p.gossip.seconds = comm::seconds_of_exchange(*between, p.gossip.bytes,
                                                 repeats(p.neighbors() * double(p.gossip.bytes) * byte));
  }
  agree(p.fronts, me, {&p.sum, &p.slices, &p.gossip});
}

// And beside steps, as much as the exchange says that links carry in this part of a step. Steps alone and
// with both kinds of messages take turns, where they are short, because the speed of machines drifts.
void burden(Probed& p, Computing& computing, const Member& me, comm::Communicator* between) {
  constexpr double kPart = 0.75;
  constexpr int kLeast = 3, kTurns = 6;  // steps of a kind in a turn, and turns
  const int ways = p.neighbors();
  const double step = slowest_step(p), sent = double(p.gossip.bytes) * ways / p.gossip.seconds * step * kPart;
  const int most = std::clamp(int(kSeconds / 2 / step), kLeast, kMost);
  const int turns = std::clamp(most / kLeast, 1, kTurns), count = most / turns;
  std::optional<comm::RingExchange> both, one;
  if (between) {
    const auto bytes = [&](int messages) {
      return std::clamp<int64_t>(int64_t(sent / messages), 1024, kMany) / 4 * 4;
    };
    both.emplace(*between, bytes(ways), comm::RingWays::kBoth);
    p.burden.bytes = both->bytes();
    if (ways > 1) one.emplace(*between, bytes(1), comm::RingWays::kOne), p.one_way.bytes = one->bytes();
  }
  std::vector<double> alone, with_both, with_one;
  const auto beside = [&](std::optional<comm::RingExchange>& ring, std::vector<double>& all) {
    me.comm.barrier();
    add_steps(alone, computing, (count + 1) / 2);
    me.comm.barrier();
    ring ? add_steps_beside(*ring, all, computing, count, p.workers[size_t(me.rank)].byte)
         : add_steps(all, computing, count + 1);
  };
  for (int turn = 0; turn < turns; ++turn) {
    beside(both, with_both);
    if (ways > 1) beside(one, with_one);
  }
  me.comm.barrier();
  p.burden.seconds = middle(with_both) - middle(alone);
  if (ways > 1) p.one_way.seconds = middle(with_one) - middle(alone);
  agree(slow_fronts(p, me, middle(alone)), me, {&p.burden, &p.one_way});
}

void crowd(Probed& p, const Config& c, Computing& computing, const Member& me) {
  if (p.fronts.size() < 2) return;
  std::unique_ptr<comm::Communicator> between;
  if (std::find(p.fronts.begin(), p.fronts.end(), me.rank) != p.fronts.end())
    between = me.comm.group(p.fronts);
  const int64_t model = computing.model_bytes();
  exchange(p, model, nn::slice_bytes_for(model, c.slice_mb), me, between.get());
  burden(p, computing, me, between.get());
}

}  // namespace

Probed probe(const Config& c, const Member& me, Progress& progress) {
  const double from = clock_seconds();
  Probed p;
  p.workers = everybody(me.comm);
  {
    std::unique_ptr<Computing> computing;
    together(me.comm, [&] { computing = std::make_unique<Computing>(c, me, progress); });
    const Setup& s = computing->setup();
    p.ghost.kind = GradientPlan::Kind::kGhost;
    p.ghost.classes = int64_t(s.data.train->classes().size());
    p.ghost.height = s.image.height, p.ghost.width = s.image.width, p.ghost.channels = s.image.channels;
    p.steps_per_epoch = s.steps_per_epoch, p.global_batch = s.global_batch;
    compute(p, *computing, me);
    time_links(p, me);
    crowd(p, c, *computing, me);
  }
  p.seconds = clock_seconds() - from;
  return p;
}

}  // namespace skein::apps
