// Workers, the rounds in which they connect, and the log.
#include "comm/sim/world.h"

#include <algorithm>
#include <cstdio>

#include "comm/sim/sanitized_stack.h"
#include "comm/sim/sim_transport.h"

namespace skein::comm::sim {

namespace {

// The sanitizer of threads sees what threads of the machine do.
#if SKEIN_TSAN
constexpr bool kHasFibers = false;
#else
constexpr bool kHasFibers = true;
#endif

constexpr double kLook = 0.02;  // seconds between two questions whether a wait is in vain

}  // namespace

World::World(const WorldOptions& o)
    : options_(o),
      baton_(o.fibers && kHasFibers),
      network_(baton_, o.weather),
      hearing_(baton_, network_, o.silence,
               [this](Worker by, Worker of, double seconds) { fall_silent(by, of, seconds); }) {
  baton_.open_ports_by([this] { return post_.open(); });
  if (o.site) network_.flow_through(site_.emplace(baton_, *o.site));
}
World::~World() { baton_.end(); }

void World::compute(double seconds, double cores) {
  site_ ? site_->compute(site_->host_of(int(baton_.here()) - 1), seconds, cores) : spend(seconds);
}

double World::now() const {
  return std::chrono::duration<double>(baton_.now().time_since_epoch()).count() - Baton::kDawn;
}

void World::write(const std::string& line) {
  char time[32];
  std::snprintf(time, sizeof time, "%.9f ", now());
  log_.append(time).append(line).append("\n");
}

// ---- workers ----------------------------------------------------------------------------------------------

void World::begin(Id id, std::function<void()> main, double at) {
  CHECK(!workers_.count(id), "there was such a worker already:", id);
  const auto time = Clock::time_point(in_seconds(Baton::kDawn + at));
  const Worker w = baton_.begin(
      [this, id, time, main = std::move(main)] {
        if (Clock::now() < time) nap_until(time);
        note(id, " begins");
        main();
      },
      [this, id] {
        note(id, " ends");
        ended_.insert(worker(id));
      });
  ids_.resize(size_t(w) + 1);
  ids_[size_t(w)] = id;
  hearing_.has(w);
  workers_[id] = w;
}

void World::run() {
  begun_ = std::chrono::steady_clock::now();
  baton_.run(Clock::time_point(in_seconds(Baton::kDawn + options_.time_up)));
}

double World::real_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

Id World::me() const {
  CHECK(baton_.here(), "this thread belongs to no worker");
  return ids_[size_t(baton_.here())];
}

int World::host_of(Id id) const {
  CHECK(site_, "the workers of this world are anywhere");
  return site_->host_of(int(worker(id)) - 1);
}

World::Worker World::worker(Id id) const {
  const auto w = workers_.find(id);
  CHECK(w != workers_.end(), "no such worker", id);
  return w->second;
}

std::vector<Id> World::alive() const {
  std::vector<Id> out;
  for (Worker w = 1; w < ids_.size(); ++w)
    if (!ended_.count(w) && !hearing_.is_dead(w)) out.push_back(ids_[w]);
  return out;
}

// ---- rounds -----------------------------------------------------------------------------------------------

std::unique_ptr<Transport> World::connect(const View& v, double deadline,
                                          const std::function<bool()>& in_vain) {
  std::vector<Id> members;
  for (const View::Member& m : v.members) members.push_back(m.id);
  return connect(v.epoch, members, deadline, in_vain);
}

// The round of these members that has not been formed yet.
std::shared_ptr<World::Round> World::forming(uint32_t epoch, const std::vector<Id>& members) {
  for (const auto& r : forming_)
    if (r->epoch == epoch && r->members == members) return r;
  std::vector<Worker> workers;
  for (Id m : members) workers.push_back(worker(m));
  forming_.push_back(std::make_shared<Round>(epoch, members, std::move(workers), options_));
  return forming_.back();
}

std::unique_ptr<Transport> World::connect(uint32_t epoch, const std::vector<Id>& members, double deadline,
                                          const std::function<bool()>& in_vain) {
  const std::shared_ptr<Round> round = forming(epoch, members);
  const Rank me = Rank(round->place_of(baton_.here()));
  CHECK(size_t(me) < members.size(), "a worker connects with its like: not a member", this->me());
  Round::Meeting& meeting = round->meeting;
  struct Present {
    Round::Meeting& meeting;
    const Rank me;
    ~Present() {
      if (!meeting.formed) meeting.waiting.erase(me);  // it has given up, or been killed
    }
  } present{meeting, me};
  meeting.waiting.insert(me), meeting.come.insert(me);
  const auto complete = [&] {
    if (meeting.formed) return true;
    if (meeting.waiting.size() < members.size()) return false;
    if (network_.is_cut())
      for (Worker a : round->workers)
        for (Worker b : round->workers)
          if (!network_.reaches(a, b)) return false;
    round->open.assign(members.size(), true);
    meeting.formed = true;
    rounds_.push_back(round);
    std::erase(forming_, round);
    if (faulty_)
      for (Worker a : round->workers) hearing_.listen(a);
    meeting.complete.notify_all();
    return true;
  };
  std::unique_lock lock(meeting.mutex);
  for (const auto until = after(deadline); !complete();) {
    if (in_vain && in_vain()) throw Timeout(-1, "the membership has changed before all had met");
    if (Clock::now() >= until) {
      Rank missing = 0;
      while (meeting.come.count(missing)) ++missing;
      if (missing == Rank(members.size()))
        throw Timeout(-1, text("the members of epoch ", epoch, " cannot reach each other"));
      throw Timeout(missing,
                    text("rank ", missing, " of epoch ", epoch, " has not come within ", deadline, " s"));
    }
    meeting.complete.sleep(lock, std::min(until, after(in_vain ? kLook : longest_nap())));
  }
  lock.unlock();
  nap(in_seconds(2 * options_.weather.latency));
  return std::make_unique<SimTransport>(*this, round, me);
}

}  // namespace skein::comm::sim
