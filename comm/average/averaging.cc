// Gossip among the ranks that are there, until it is close enough.
#include "comm/average/averaging.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/communicator/numbers.h"
#include "engine/words/find_row.h"

namespace skein::comm {
namespace {

constexpr Tag kGivenUp = 7;

void refuse_all_but_pairs(const Topology& graph) {
  bool pairs = graph.symmetric();
  for (int64_t q = 0; q < std::max<int64_t>(1, graph.cycle()) && pairs; ++q)
    for (Rank r = 0; r < graph.size(); ++r) {
      const Mix m = graph.at(r, q);
      pairs = pairs && m.out.size() <= 1 && (m.out.empty() || m.self == 0.5);
    }
  if (!pairs)
    throw BadOption(
        "--algorithm pairwise needs a graph of pairs: allowed are --topology bipartite-exponential, "
        "bipartite-linear (an even number of workers) and random, with --peers 1");
}

std::string list(const std::vector<Rank>& ranks) {
  std::string s;
  for (const Rank r : ranks) s += text(s.empty() ? "" : ", ", r);
  return s;
}

Tensor on_host(const Tensor& x) {
  const Tensor host = x.to(kCpu);
  if (!x.device().is_host()) current_stream(x.device()).sync();
  return host;
}

// A whole averaging, epoch after epoch. What an epoch used lives until the end, because a peer that is late
// may still read its memory.
class Run {
 public:
  Run(Communicator& world, const Tensor& x, const AveragingOptions& o)
      : world_(world), o_(o), x_({x.size()}, x.dtype(), world.allocator()), given_(x) {
    copy_bytes(x_, on_host(given_));
    for (Rank r = 0; r < world.size(); ++r) members_.push_back(r);
    world.membership().let_epochs_overlap();
  }

  AveragingResult run() {
    while (!epoch()) renew();
    if (!result_.left) copy_bytes(given_, x_);
    for (const auto& g : groups_)
      if (g) result_.bytes_sent += g->meter().traffic().bytes;
    result_.living = std::move(groups_.back());
    return std::move(result_);
  }

 private:
  // Returns true when all is done, false when a member is missing.
  bool epoch() {
    result_.epochs.push_back(
        {.number = number(), .from = result_.rounds, .members = members_, .begin = {}, .end = {}});
    leaving_.clear();
    try {
      groups_.push_back(world_.group(members_));
      std::unique_ptr<Topology> graph;
      if (o_.algorithm != Averaging::kAllReduce) {
        graph = o_.graph(int(members_.size()), number());
        if (o_.algorithm == Averaging::kPairwise) refuse_all_but_pairs(*graph);
      }
      cycle_ = graph ? std::max<int64_t>(graph->cycle(), int64_t(members_.size())) : 1;
      averagers_.push_back(
          std::make_unique<Averager>(*groups_.back(), std::move(graph), x_, o_.algorithm, number()));
      averagers_.back()->meet(o_.relative > 0);
      return gossip(*averagers_.back());
    } catch (const PeerLost& e) { why_ = e.what(); } catch (const Timeout& e) {
      why_ = e.what();
    }
    return false;
  }

  // The same, after the members have met.
  bool gossip(Averager& a) {
    result_.epochs.back().begin = a.mass();
    // Rounding ends progress somewhere: give up when many rounds bring nothing.
    const int64_t patience = 50 + 20 * cycle_;
    double best = look(a);
    for (int64_t best_at = result_.rounds; !finished();) {
      if (o_.rounds == 0 && (result_.rounds >= o_.most_rounds || result_.rounds - best_at > patience))
        throw Error(out_of_reach(a, best));
      if (!leaving_.empty()) return part(a);
      const auto began = Clock::now();
      a.round();
      result_.seconds += seconds_since(began);
      ++result_.rounds;
      const double off = look(a);
      if (off < best) best = off, best_at = result_.rounds;
    }
    result_.epochs.back().end = a.mass();
    result_.weight = a.weight();
    result_.skipped += a.skipped();
    a.divide();
    return true;
  }

  bool finished() const {
    if (result_.stopped || o_.rounds > 0) return result_.stopped || result_.rounds >= o_.rounds;
    return o_.relative > 0 ? result_.relative <= o_.relative : result_.error <= o_.tolerance;
  }

  // Rounding moves the largest numbers by some units of their last place in every gossip.
  std::string out_of_reach(const Averager& a, double best) const {
    constexpr double kUnits = 64;
    const auto [precision, type] = precision_of(x_);
    const double largest = a.largest(), rounding = precision * (o_.relative > 0 ? 1 : largest);
    const std::string goal = o_.relative > 0 ? text("a distance of ", o_.relative, " of each number's size")
                                             : text("--tolerance ", o_.tolerance);
    return text(goal, " is out of reach: after ", result_.rounds, " rounds the largest ",
                o_.relative > 0 ? "is " : "distance from the mean is ", best, "; ",
                best <= kUnits * rounding
                    ? text(type, " rounds numbers as large as ", largest, " by ", precision * largest)
                    : text("the graph brings the workers no closer to each other"),
                ". Give a larger --tolerance, or --rounds");
  }

  // How far the members are from the goal.
  double look(Averager& a) {
    const Spread s = a.look(o_.wish ? o_.wish() : Wish::kGoOn);
    result_.error = s.worst;
    result_.relative = s.relative;
    result_.trace.push_back({result_.rounds, number(), s.worst, s.rms});
    for (size_t i = 0; i < s.wishes.size(); ++i) {
      if (s.wishes[i] == Wish::kLeave) leaving_.push_back(Rank(i));
      result_.stopped = result_.stopped || s.wishes[i] == Wish::kStop;
    }
    result_.stopped = result_.stopped || leaving_.size() == s.wishes.size();
    return o_.relative > 0 ? s.relative : s.worst;
  }

  // The members that leave give all they hold to the first that stays. Returns true on a member that leaves.
  bool part(Averager& a) {
    const auto leaves = [&](Rank r) {
      return std::find(leaving_.begin(), leaving_.end(), r) != leaving_.end();
    };
    Rank heir = 0;
    while (leaves(heir)) ++heir;
    std::vector<Rank> gone, staying;
    for (Rank r = 0; r < Rank(members_.size()); ++r)
      (leaves(r) ? gone : staying).push_back(members_[size_t(r)]);
    why_ = text("rank ", list(gone),
                gone.size() == 1 ? " has left and gave what it held to rank "
                                 : " have left and gave what they held to rank ",
                members_[size_t(heir)]);
    const Rank me = groups_.back()->rank();
    if (leaves(me)) {
      a.bequeath(heir);
      result_.left = true;
      groups_.push_back(nullptr);
      return true;
    }
    if (me == heir)
      for (const Rank r : leaving_) a.inherit(r);
    gone_.insert(gone.begin(), gone.end());
    return false;
  }

  // The living members find each other, take in what was sent to them, and begin the next epoch.
  void renew() {
    world_.progress();
    if (const auto verdict = world_.poll(kAnyone, kGivenUp))
      throw GivenUp(
          text("rank ", world_.rank(), " was given up by rank ", verdict->from,
               ", which had not heard of it for too long (stopped, or cut off?); the others continue ",
               "without it"));
    for (;;) {
      std::vector<Rank> living, here;  // ranks of the world, and the same as ranks of the epoch that ends
      for (Rank r = 0; r < Rank(members_.size()); ++r) {
        const Rank w = members_[size_t(r)];
        if (gone_.count(w) || !world_.membership().alive(world_.world_rank(w))) continue;
        living.push_back(w), here.push_back(r);
      }
      if (living.size() == members_.size()) throw Error(why_);
      try {
        next_epoch(living, here);
        break;
      } catch (const PeerLost& e) { why_ = e.what(); }  // one more
    }
  }

  void next_epoch(const std::vector<Rank>& living, const std::vector<Rank>& here) {
    groups_.push_back(world_.group(living));
    Averager& a = *averagers_.back();
    a.absorb(*groups_.back(), here);
    const Mass mine = a.held();
    Mass held;
    uint32_t latest = number();
    for (const auto& m :
         tell(*groups_.back(), {mine.w, mine.x, double(result_.rounds), double(number())}, 0)) {
      held.w += m[0], held.x += m[1];
      result_.rounds = std::max(result_.rounds, int64_t(m[2]));
      latest = std::max(latest, uint32_t(m[3]));
    }
    result_.epochs.back().end = held;
    result_.skipped += a.skipped();
    result_.stopped = false;  // a member that wants to stop will say so again
    a.divide();
    if (world_.rank() == living[0])
      for (const Rank r : members_)
        if (!gone_.count(r) && std::find(living.begin(), living.end(), r) == living.end()) try {
            world_.push(r, kGivenUp, 0, 1, Tensor::zeros({1}));  // in case it is only stopped
          } catch (const Error&) {}
    world_.transport().mailbox().begin_epoch(latest + 1);
    if (o_.say && world_.rank() == living[0])
      o_.say(text("after round ", result_.rounds, ": ", why_, "; going on with rank ", list(living),
                  ", membership epoch ", number()));
    members_ = living;
  }

  uint32_t number() const { return world_.membership().epoch(); }

  Communicator& world_;
  const AveragingOptions& o_;
  const Tensor x_, given_;
  std::vector<Rank> members_;  // of this epoch, as ranks of the world
  std::vector<Rank> leaving_;  // of them, as ranks of the epoch
  std::set<Rank> gone_;        // have left in good order
  std::vector<std::unique_ptr<Communicator>> groups_;
  std::vector<std::unique_ptr<Averager>> averagers_;
  AveragingResult result_;
  int64_t cycle_ = 1;
  std::string why_;  // the epoch ended
};

}  // namespace

Averaging parse_averaging(const std::string& name) {
  return one_of<Averaging>("--algorithm", hyphens(name),
                           {{"push-sum", Averaging::kPushSum},
                            {"pairwise", Averaging::kPairwise},
                            {"allreduce", Averaging::kAllReduce}});
}

AveragingResult average(Communicator& comm, const Tensor& x, const AveragingOptions& o) {
  return Run(comm, x, o).run();
}

}  // namespace skein::comm
