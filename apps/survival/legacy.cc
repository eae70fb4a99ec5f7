// What newcomers have to know is broadcast as JSON.
#include "apps/survival/legacy.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/base/together.h"
#include "apps/checkpoint/pool.h"
#include "apps/checkpoint/reshare.h"
#include "apps/launch/elastic/role.h"
#include "data/dealing.h"
#include "engine/words/json.h"

namespace skein::apps {

// The center goes on as the latest that any of them has: who kept it, if it is not lost, or a worker that has
// committed since, or whose commit was still on its way. That contains all commits but those that a lost
// worker made after it.
optim::Snapshot::Fields Legacy::fields_with_center(comm::Communicator& comm) const {
  constexpr const char *kTheta = "strategy.center.theta", *kVersion = "strategy.center.version",
                       *kLog = "strategy.center.log", *kSeen = "strategy.center.seen",
                       *kSeenVersion = "strategy.center.seen_version";
  optim::Snapshot::Fields all;
  if (has_state) all = state.fields();
  const auto version_of = [&](const char* field) {
    return all.contains(field) ? double(std::get<int64_t>(all.at(field))) : -1;
  };
  const auto told = comm::gather_numbers(comm, {version_of(kVersion), version_of(kSeenVersion)});
  double latest = -1;
  int holder = -1;
  for (const size_t kind : {0, 1})  // of the same version it is who kept it
    for (int r = 0; r < comm.size(); ++r)
      if (told[size_t(r)][kind] > latest) latest = told[size_t(r)][kind], holder = r;
  const auto seen = all.extract(kSeen), version = all.extract(kSeenVersion);
  const bool kept = told[size_t(comm.rank())][0] == latest;
  if (holder == comm.rank() && !kept) {
    all[kTheta] = seen.mapped(), all[kVersion] = version.mapped();
    all[kLog] = int64_t(0);
  } else if (holder != comm.rank()) {
    for (const char* field : {kTheta, kVersion, kLog}) all.erase(field);
  }
  return all;
}

double Legacy::restore(comm::Communicator& comm, const std::string& algorithm,
                       const optim::Walk& walk) const {
  Pool pool;
  const optim::Snapshot::Fields own = fields_with_center(comm);
  if (has_state) pool.add(own);
  pool.unite(comm, has_state);
  load_pooled(pool, algorithm, comm.rank(), Differing::kKeepOwn, walk);
  return pool.weight() > 0 ? std::max(0.0, workers_before - pool.weight()) : 0;
}

bool Legacy::goes_on(comm::Communicator& comm, int64_t agreed) const {
  bool founded = false, known = false;
  for (const auto& one :
       comm::gather_numbers(comm, {double(has_state), double(!directory.empty()), double(founder)})) {
    if (one[0] != 0) return true;  // the same answers everywhere, and so the same verdict
    known = known || one[1] != 0;
    founded = founded || one[2] != 0;
  }
  return !founded || (known && agreed > 0);
}

// A worker's own account, for workers at different steps.
Json Legacy::words_of_apart() const {
  const bool dealt = apart.portions && apart.portions->shards().empty();
  return {{"epoch", apart.epoch},
          {"taken", apart.taken},
          {"closed", apart.closed},
          {"shares", dealt ? apart.portions->shares() : std::vector<int64_t>()}};
}

// A member of the latest epoch works out what is left of the epoch of data that has begun: the images that
// no survivor has taken and no lost worker has reported. All continue with the step to which that number
// of images belongs.
void Legacy::deal_again(comm::Communicator& comm) {
  Json all = Json::array();
  for (const std::string& words : comm::gather_text(comm, words_of_apart().dump(), 0))
    all.push_back(parse_json<Json>(words));
  all = parse_json<Json>(from_rank_zero(comm, all.dump()));
  int latest = 0, teller = 0;
  for (int r = 0; r < comm.size(); ++r)
    if (const int epoch = all.at(size_t(r)).at("epoch"); epoch > latest) latest = epoch, teller = r;
  if (latest == 0) return;  // all were at one step
  const Json mine = comm.rank() == teller ? take_stock(all) : Json();
  const Json told = parse_json<Json>(comm::broadcast_text(comm, mine.dump(), teller));
  leftover = told.at("left"), step = told.at("step"), closed_epochs = told.at("closed");
  if (changes.empty()) return;
  changes.back().step = step, changes.back().epoch = told.at("epoch");
  changes.back().images_redealt = told.at("redealt");
}

Json Legacy::take_stock(const Json& all) const {
  std::vector<int64_t> taken = apart.taken;
  data::Portions p = *apart.portions;
  int64_t begun = 0;
  for (const Json& one : all) {
    if (one.at("epoch") != apart.epoch) continue;
    if (const int64_t closed = one.at("closed");
        closed > begun) {  // shares may change from one epoch to the next
      begun = closed;
      if (p.shards().empty()) p.share_out(one.at("shares").get<std::vector<int64_t>>());
    }
    for (size_t r = 0; r < taken.size(); ++r)
      taken[r] = std::max(taken[r], one.at("taken").at(r).get<int64_t>());
  }
  const data::Leftover left = p.left_of(begun, taken);
  int64_t redealt = left.size();  // without those of steps that no worker has reached
  for (int64_t k = *std::max_element(taken.begin(), taken.end()); k < (begun + 1) * p.steps_per_epoch(); ++k)
    redealt -= p.samples(k);
  const int64_t first = p.first_of(left);
  return {{"left", left.write()},
          {"step", first},
          {"epoch", double(first) / double(p.steps_per_epoch())},
          {"closed", apart.closed},
          {"redealt", redealt}};
}

// Newcomers, whose speed is not known, are dealt what the others have on average.
std::vector<int64_t> Legacy::shares_of(comm::Communicator& comm) const {
  std::vector<double> speeds;
  for (const auto& one : comm::gather_numbers(comm, {speed})) speeds.push_back(one[0]);
  const bool same = std::all_of(speeds.begin(), speeds.end(), [](double s) { return s <= 0; });
  if (same || global_batch < comm.size()) return {};
  return data::deal_by_speed(global_batch, speeds);
}

// Says of the change under way that this is the epoch that begins. Between it and the one that this worker
// has left there may have been others that did not come about, because members were lost.
void Legacy::enter(const comm::View& now) {
  if (changes.empty()) return;
  ChangeEvent& e = changes.back();
  e.number = int(now.epoch), e.joined = 0;
  e.workers = int(now.members.size()) - (server_in(now) >= 0);
  for (const comm::View::Member& m : now.members) e.joined += !before.has(m.id);
  for (size_t r = 0; r < before.members.size(); ++r) {
    const std::string who = name_in(before, int(r)) + ": ";
    const bool known = std::any_of(e.lost.begin(), e.lost.end(),
                                   [&](const std::string& one) { return one.starts_with(who); });
    if (!known && !now.has(before.members[r].id)) e.lost.push_back(who + "lost while the others connected");
  }
}

// Whoever was the first to know of a loss had heard the shortest silence.
std::optional<double> Legacy::detected(comm::Communicator& comm, const comm::View& now) const {
  constexpr double kUnknown = std::numeric_limits<double>::max();
  std::vector<double> mine;
  for (const comm::View::Member& m : before.members) {
    if (now.has(m.id)) continue;
    const auto known = silences.find(m.id);
    mine.push_back(known == silences.end() ? kUnknown : known->second);
  }
  if (mine.empty()) return {};
  std::vector<double> least(mine.size(), kUnknown);
  for (const auto& one : comm::gather_numbers(comm, mine))
    for (size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], one[i]);
  std::optional<double> longest;
  for (const double s : least)
    if (s < kUnknown) longest = std::max(longest.value_or(0), s);
  return longest;
}

// The first that knows the run: rank 0 may be a founder that was cut off before it had begun.
int Legacy::teller(comm::Communicator& comm) const {
  const auto knows = comm::gather_numbers(comm, {double(!directory.empty())});
  const auto first = std::find_if(knows.begin(), knows.end(), [](const auto& one) { return one[0] != 0; });
  return first == knows.end() ? 0 : int(first - knows.begin());
}

void Legacy::share(comm::Communicator& comm, const comm::View& now) {
  enter(now);
  deal_again(comm);
  Json mine = {{"workers", workers_at_first}, {"before", workers_before}, {"batch", global_batch}};
  for (const ChangeEvent& e : changes) mine["changes"].push_back(to_json(e));
  const int from = teller(comm);
  const Json told = parse_json<Json>(comm::broadcast_text(comm, mine.dump(), from));
  directory = comm::broadcast_text(comm, directory, from);
  workers_at_first = told.at("workers");
  workers_before = told.at("before");
  if (const auto left = comm::View::read(comm::broadcast_text(comm, before.write(), from))) before = *left;
  global_batch = told.at("batch");
  shares = shares_of(comm);
  changes.clear();
  if (told.contains("changes"))
    for (const Json& e : told.at("changes")) changes.push_back(change_of(e));
  if (!changes.empty()) changes.back().detected = detected(comm, now);
}

}  // namespace skein::apps
