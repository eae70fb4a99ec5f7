// Deaths, hangs and cuts of a simulated world, and when its workers notice.
#include <algorithm>
#include <cmath>

#include "comm/sim/sim_transport.h"

namespace skein::comm::sim {

void World::at(double second, std::function<void()> event) {
  baton_.at(Clock::time_point(in_seconds(Baton::kDawn + second)), std::move(event));
}

void World::count_message() {
  ++messages_;
  while (!at_messages_.empty() && at_messages_.begin()->first <= messages_) {
    const auto first = at_messages_.extract(at_messages_.begin());
    first.mapped()();
  }
}

void World::kill(Id id, Death d) {
  const Worker w = worker(id);
  if (dead_.count(w) || ended_.count(w)) return;
  note(text(id, d == Death::kHangUp ? " is killed" : " is killed with its machine"));
  dead_.insert(w);
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
  listen(w);
}

void World::hang(Id id) {
  note(text(id, " hangs"));
  faulty_ = true;
  baton_.hang(worker(id));
  listen(worker(id));
}

// A worker that hung cannot tell the silence of others from its own absence.
void World::wake(Id id) {
  const Worker w = worker(id);
  if (!baton_.hangs(w)) return;
  note(text(id, " wakes"));
  for (auto& [pair, since] : unheard_)
    if (pair.first == w) since = baton_.now(), expect_silence(pair.first, pair.second);
  baton_.wake(w);
  listen(w);
}

void World::cut(const std::vector<Id>& side) {
  std::set<Worker> here;
  std::string names;
  for (Id id : side) here.insert(worker(id)), names += text(' ', id);
  note("cut:" + names);
  faulty_ = true;
  for (Worker a : here)
    for (Worker b = 1; b < ids_.size(); ++b)
      if (!here.count(b)) network_.cut(a, b);
  for (Worker a : here) listen(a);
}

void World::mend() {
  note("mended");
  for (Worker a = 1; a < ids_.size(); ++a)
    for (Worker b = a + 1; b < ids_.size(); ++b) network_.mend(a, b);
  for (Worker a = 1; a < ids_.size(); ++a) listen(a);
  for (const auto& round : forming_) round->complete.notify_all();
}

// ---- how peers notice
// ---------------------------------------------------------------------------------------

bool World::is_heard(Worker by, Worker of) const {
  return !dead_.count(of) && !baton_.hangs(of) && network_.reaches(of, by);
}

// Between w and all that are connected with it.
void World::listen(Worker w) {
  const auto look = [&](Worker by, Worker of) {
    if (is_heard(by, of))
      unheard_.erase({by, of});
    else if (unheard_.emplace(std::pair(by, of), baton_.now()).second)
      expect_silence(by, of);
  };
  for (Worker other = 1; other < ids_.size(); ++other)
    if (other != w) look(w, other), look(other, w);
}

void World::expect_silence(Worker by, Worker of) {
  const Clock::time_point since = unheard_.at({by, of});
  baton_.at(baton_.now() + in_seconds(options_.silence), [this, by, of, since] {
    const auto u = unheard_.find({by, of});
    if (u != unheard_.end() && u->second == since && !baton_.hangs(by)) fall_silent(by, of);
  });
}

void World::fall_silent(Worker by, Worker of) {
  for (const auto& weak : rounds_) {
    const std::shared_ptr<Round> round = weak.lock();
    if (!round) continue;
    const size_t me = round->place_of(by), peer = round->place_of(of);
    if (me == round->members.size() || peer == round->members.size() || !round->open[me]) continue;
    if (!round->boxes[me]->membership().alive(Rank(peer))) continue;
    note(text(ids_[by], " has not heard of ", ids_[of]));
    const std::chrono::duration<double> silent = baton_.now() - unheard_.at({by, of});
    round->boxes[me]->lose(Rank(peer),
                           text("not heard of for ", options_.silence, " s (stopped, or the link is cut)"),
                           false, silent.count());
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
        note(text(round->members[peer], " sees the end of ", round->members[me]));
        round->boxes[peer]->lose(Rank(me), "its process has ended", true, now() - ended);
      });
}

// ---- by chance
// ----------------------------------------------------------------------------------------------

void World::suffer(const Rates& r, double until) {
  for (uint32_t kind = 0; kind < 3; ++kind) befall(r, until, kind, 0);
}

// The next event of this kind, which brings about the one after it.
void World::befall(const Rates& r, double until, uint32_t kind, uint64_t count) {
  const double rate = kind == 0 ? r.kills : kind == 1 ? r.hangs : r.cuts;
  if (rate <= 0) return;
  const Draw draw{options_.weather.seed, Purpose::kFault, count, kind};
  const double when = now() - std::log(1 - double(draw.unit(0))) / rate;
  if (when > until) return;
  at(when, [this, r, until, kind, count, draw] {
    misfortune(r, kind, draw);
    befall(r, until, kind, count + 1);
  });
}

void World::misfortune(const Rates& r, uint32_t kind, const Draw& draw) {
  const std::vector<Id> all = alive();
  if (all.empty()) return;
  const Id victim = all[draw.bits(1) % all.size()];
  const double length = -std::log(1 - double(draw.unit(2)));
  if (kind == 0 && all.size() > r.spared) {
    kill(victim, draw.bits(3) % 4 ? Death::kHangUp : Death::kSilence);
  } else if (kind == 1) {
    hang(victim);
    at(now() + length * r.hang_seconds, [this, victim] { wake(victim); });
  } else if (kind == 2) {
    std::vector<Id> side;
    for (size_t i = 0; i < all.size(); ++i)
      if (draw.bits(4 + i) % 2) side.push_back(all[i]);
    cut(side);
    at(now() + length * r.cut_seconds, [this] { mend(); });
  }
}

}  // namespace skein::comm::sim
