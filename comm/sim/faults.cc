// Deaths, hangs and cuts of a simulated world, and when its workers notice.
#include <algorithm>

#include "comm/sim/sim_transport.h"

namespace skein::comm::sim {
namespace {

using Side = std::set<Baton::Worker>;

Side workers_of(const std::vector<Id>& ids, const std::map<Id, Baton::Worker>& all) {
  Side here;
  for (Id id : ids) here.insert(all.at(id));
  return here;
}

// Calls f with each worker of this side and each of the other one.
template <class F>
void across(const Side& here, Baton::Worker end, F f) {
  for (Baton::Worker a : here)
    for (Baton::Worker b = 1; b < end; ++b)
      if (!here.count(b)) f(a, b);
}

}  // namespace

void World::at(double second, std::function<void()> event) {
  baton_.at(Clock::time_point(in_seconds(Baton::kDawn + second)), std::move(event));
}

void World::kill(Id id, Death d) {
  const Worker w = worker(id);
  if (hearing_.is_dead(w) || ended_.count(w)) return;
  note(id, d == Death::kHangUp ? " is killed" : " is killed with its machine");
  hearing_.dies(w);
  faulty_ = true;
  std::erase_if(rounds_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : rounds_) {
    const std::shared_ptr<Round> round = weak.lock();
    const size_t me = round->place_of(w);
    if (me == round->members.size() || !round->open[me]) continue;
    if (d == Death::kHangUp) hang_up(round, me);
    round->open[me] = false;
  }
  baton_.kill(w);
  hearing_.listen(w);
}

void World::hang(Id id) {
  note(id, " hangs");
  faulty_ = true;
  baton_.hang(worker(id));
  hearing_.listen(worker(id));
}

void World::wake(Id id) {
  const Worker w = worker(id);
  if (baton_.hangs(w) != 1) return baton_.wake(w);
  note(id, " wakes");
  hearing_.forgive(w);
  baton_.wake(w);
  hearing_.listen(w);
}

void World::cut(const std::vector<Id>& side) {
  std::string names;
  for (Id id : side) names += text(' ', id);
  note("cut:" + names);
  faulty_ = true;
  const std::set<Worker> here = workers_of(side, workers_);
  across(here, ids_.size(), [&](Worker a, Worker b) { network_.cut(a, b); });
  for (Worker a : here) hearing_.listen(a);
}

void World::mend(const std::vector<Id>& side) {
  note("mended");
  across(workers_of(side, workers_), ids_.size(), [&](Worker a, Worker b) { network_.mend(a, b); });
  for (Worker a = 1; a < ids_.size(); ++a) hearing_.listen(a);
  for (const auto& round : forming_) round->meeting.complete.notify_all();
}

// ---- how peers notice -------------------------------------------------------------------------------------

void World::fall_silent(Worker by, Worker of, double seconds) {
  for (const auto& weak : rounds_) {
    const std::shared_ptr<Round> round = weak.lock();
    if (!round) continue;
    const size_t me = round->place_of(by), peer = round->place_of(of);
    if (me == round->members.size() || peer == round->members.size() || !round->open[me]) continue;
    if (!round->boxes[me]->membership().alive(Rank(peer))) continue;
    note(ids_[by], " has not heard of ", ids_[of]);
    round->boxes[me]->lose(Rank(peer),
                           text("not heard of for ", options_.silence, " s (stopped, or the link is cut)"),
                           false, seconds);
  }
}

// Its peers see the end of this connection after all that came by it.
void World::hang_up(const std::shared_ptr<Round>& round, size_t me) {
  round->open[me] = false;
  const double ended = now();
  for (size_t peer = 0; peer < round->members.size(); ++peer)
    if (peer != me)
      network_.send_last(round->workers[me], round->workers[peer], [this, round, me, peer, ended] {
        if (!round->open[peer] || !round->boxes[peer]->membership().alive(Rank(me))) return;
        note(round->members[peer], " sees the end of ", round->members[me]);
        round->boxes[peer]->lose(Rank(me), "its process has ended", true, now() - ended);
      });
}

}  // namespace skein::comm::sim
