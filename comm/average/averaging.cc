// Gossip among the ranks that are there, until it is close enough.
#include "comm/average/averaging.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/communicator/numbers.h"
#include "engine/words/find_row.h"

namespace skein::comm {
namespace {

constexpr double kHearsay = 1;  // seconds in which a loss that another member has seen is known here

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

std::vector<Rank> all_of(int n) {
  std::vector<Rank> all;
  for (Rank r = 0; r < n; ++r) all.push_back(r);
  return all;
}

bool holds(const std::vector<Rank>& ranks, Rank r) {
  return std::find(ranks.begin(), ranks.end(), r) != ranks.end();
}

}  // namespace

AveragingRun::AveragingRun(Rank me, const Tensor& x, AveragingOptions o)
    : me_(me), o_(std::move(o)), given_(x), x_(on_host(x)) {}

Circle AveragingRun::circle(Communicator& c) const {
  if (!council_) return {c};
  return {c, [council = council_] { council->require_unchanged(); }};
}

bool AveragingRun::epoch(Communicator& world, Council* council, const std::function<void()>& begun) {
  council_ = council;
  try {
    auto members = world.group(all_of(world.size()));
    if (averager_) {
      hand_over(std::move(members));
      if (begun) begun();
    } else {
      names_ = all_of(world.size());
      members_ = std::move(members);
    }
    begin();
    return gossip();
  } catch (const PeerLost& e) { return breaks_off(e.what()); } catch (const Timeout& e) {
    return breaks_off(e.what());
  } catch (const EpochEnds& e) { return false; }
}

// A member that does not answer may have seen a loss that this one has not.
bool AveragingRun::breaks_off(const std::string& why) {
  if (!council_) throw Error(why);
  const Communicator& c = *members_;
  for (Rank r = 0; r < c.size(); ++r)
    if (!c.membership().alive(c.world_rank(r))) return false;
  try {
    council_->require_unchanged(kHearsay);
  } catch (const EpochEnds&) { return false; }
  throw Error(why);
}

// The ranks in a past epoch of the members of this one.
std::vector<Rank> AveragingRun::ranks_in(const View& past) const {
  std::vector<Rank> all;
  for (const View::Member& m : council_->now().members) all.push_back(past.rank(m.id));
  return all;
}

// What the last epoch has left behind becomes what this one begins with. Nothing of it is dropped before all
// have taken in what was sent to them, and whoever is interrupted takes in the rest in a later epoch.
void AveragingRun::hand_over(std::unique_ptr<Communicator> next) {
  const std::vector<Rank> here = ranks_in(view_);
  averager_->absorb(circle(*next), here);
  const Mass mine = averager_->held();
  Mass held;
  std::vector<Rank> names;
  for (const auto& m : tell(circle(*next), {mine.w, mine.x, double(result_.rounds), double(me_)}, 0)) {
    held.w += m[0], held.x += m[1];
    result_.rounds = std::max(result_.rounds, int64_t(m[2]));
    names.push_back(Rank(m[3]));
  }
  result_.epochs.back().end = held;
  result_.skipped += averager_->skipped();
  result_.stopped = false;  // a member that wants to stop will say so again
  averager_->divide();
  if (o_.say && next->rank() == 0)
    o_.say(text("after round ", result_.rounds, ": ", why_without(here), "; going on with rank ", list(names),
                ", membership epoch ", council_->now().epoch));
  x_ = x_.to(kCpu).clone();
  averager_.reset();
  result_.bytes_sent += members_->meter().traffic().bytes;
  members_ = std::move(next);
  names_ = std::move(names);
}

std::string AveragingRun::why_without(const std::vector<Rank>& living) const {
  std::string all = parted_;
  for (Rank r = 0; r < Rank(names_.size()); ++r) {
    if (holds(living, r) || holds(leaving_, r)) continue;
    const std::string why = members_->membership().why(members_->world_rank(r));
    all +=
        text(all.empty() ? "" : "; ", "rank ", names_[size_t(r)], " is lost", why.empty() ? "" : ": ", why);
  }
  return all;
}

void AveragingRun::begin() {
  if (council_) view_ = council_->now();
  result_.epochs.push_back(
      {.number = view_.epoch, .from = result_.rounds, .members = names_, .begin = {}, .end = {}});
  leaving_.clear(), parted_.clear();
  const Tensor x({x_.size()}, x_.dtype(), members_->allocator());
  copy_bytes(x, x_);
  x_ = x;
  std::unique_ptr<Topology> graph;
  if (o_.algorithm != Averaging::kAllReduce) {
    graph = o_.graph(members_->size(), view_.epoch);
    if (o_.algorithm == Averaging::kPairwise) refuse_all_but_pairs(*graph);
  }
  cycle_ = graph ? std::max<int64_t>(graph->cycle(), members_->size()) : 1;
  averager_ = std::make_unique<Averager>(circle(*members_), std::move(graph), x_, o_.algorithm, view_.epoch);
  averager_->meet(o_.relative > 0);
}

bool AveragingRun::gossip() {
  Averager& a = *averager_;
  result_.epochs.back().begin = a.mass();
  // Rounding ends progress somewhere: give up when many rounds bring nothing.
  const int64_t patience = 50 + 20 * cycle_;
  double best = look();
  for (int64_t best_at = result_.rounds; !finished();) {
    if (o_.rounds == 0 && (result_.rounds >= o_.most_rounds || result_.rounds - best_at > patience))
      throw Error(out_of_reach(best));
    if (!leaving_.empty()) return part();
    const auto began = Clock::now();
    a.round();
    result_.seconds += seconds_since(began);
    ++result_.rounds;
    const double off = look();
    if (off < best) best = off, best_at = result_.rounds;
  }
  result_.epochs.back().end = a.mass();
  result_.weight = a.weight();
  result_.skipped += a.skipped();
  a.divide();
  return true;
}

bool AveragingRun::finished() const {
  if (result_.stopped || o_.rounds > 0) return result_.stopped || result_.rounds >= o_.rounds;
  return o_.relative > 0 ? result_.relative <= o_.relative : result_.error <= o_.tolerance;
}

// Rounding moves the largest numbers by some units of their last place in every gossip.
std::string AveragingRun::out_of_reach(double best) const {
  constexpr double kUnits = 64;
  const auto [precision, type] = precision_of(x_);
  const double largest = averager_->largest(), rounding = precision * (o_.relative > 0 ? 1 : largest);
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
double AveragingRun::look() {
  const Spread s = averager_->look(o_.wish ? o_.wish() : Wish::kGoOn);
  result_.error = s.worst;
  result_.relative = s.relative;
  result_.trace.push_back({result_.rounds, view_.epoch, s.worst, s.rms});
  for (size_t i = 0; i < s.wishes.size(); ++i) {
    if (s.wishes[i] == Wish::kLeave) leaving_.push_back(Rank(i));
    result_.stopped = result_.stopped || s.wishes[i] == Wish::kStop;
  }
  const bool all_leave = leaving_.size() == s.wishes.size();
  result_.stopped = result_.stopped || all_leave || (!council_ && !leaving_.empty());
  return o_.relative > 0 ? s.relative : s.worst;
}

// The members that leave give all they hold to the first that stays. Returns true on a member that leaves,
// once the others have chosen to go on without it.
bool AveragingRun::part() {
  Rank heir = 0;
  while (holds(leaving_, heir)) ++heir;
  std::vector<Rank> gone;
  for (const Rank r : leaving_) gone.push_back(names_[size_t(r)]);
  parted_ = text("rank ", list(gone),
                 gone.size() == 1 ? " has left and gave what it held to rank "
                                  : " have left and gave what they held to rank ",
                 names_[size_t(heir)]);
  const Rank me = members_->rank();
  if (holds(leaving_, me)) averager_->bequeath(heir);
  if (me == heir)
    for (const Rank r : leaving_) averager_->inherit(r);
  for (const Rank r : leaving_) council_->leaves(view_.members[size_t(r)].id);
  if (!holds(leaving_, me)) return false;
  result_.left = true;
  try {
    council_->next(members_->options().deadline);
  } catch (const Error&) {}  // it is in no later epoch, as it has asked for
  return true;
}

AveragingResult AveragingRun::finish() {
  if (!result_.left) copy_bytes(given_, x_);
  result_.bytes_sent += members_->meter().traffic().bytes;
  if (!result_.left) result_.living = std::move(members_);
  return std::move(result_);
}

Averaging parse_averaging(const std::string& name) {
  return one_of<Averaging>("--algorithm", hyphens(name),
                           {{"push-sum", Averaging::kPushSum},
                            {"pairwise", Averaging::kPairwise},
                            {"allreduce", Averaging::kAllReduce}});
}

AveragingResult average(Communicator& comm, const Tensor& x, const AveragingOptions& o) {
  AveragingRun run(comm.rank(), x, o);
  CHECK(run.epoch(comm, nullptr), "there is no further epoch without a council");
  return run.finish();
}

}  // namespace skein::comm
