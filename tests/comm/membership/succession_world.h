// A world of processes that fail in every way we know: letters are lost, doubled and late, processes are cut
// off, hang, die in bursts, leave and join, single links break, and some deaths look like silence. All
// follows from a seed.
#pragma once
#include "tests/comm/membership/succession_judgement.h"

namespace skein::comm::testing {

class World : Judged {
 public:
  World(uint64_t seed, Rules rules, bool prints = false) : Judged(seed, prints), rules_(rules) {
    options_.has_register = has_register_;
    options_.patience = 0.2 + dice_.unit();
    options_.grace = 0.5 + 2 * dice_.unit();
    in_step_ = dice_.chance(0.5);
    harshness_ = 0.3 + 0.7 * dice_.unit();
    silence_ = 0.2 + dice_.unit();
    View first;
    const size_t n = 1 + seed / 2 % 10;
    for (size_t i = 0; i < n; ++i) first.members.push_back({id(i), text("card ", i)});
    history_[1] = first;
    processes_.resize(n);
    for (size_t i = 0; i < n; ++i) begin(i, first);
  }
  struct End {
    uint32_t epoch = 1;
    bool settled = false;  // else no quorum was left
    double calm = 0;       // seconds from the end of the storm
    uint32_t in_calm = 0;  // changes of epoch
  };
  // Throws Broken.
  End run() {
    for (int round = 0; round < kStorm; ++round) pass(true);
    calm_down();
    const double since = now_;
    const uint32_t before = last().epoch;
    while (!settled() && (now_ - since < kPatience || can_go_on())) {
      pass(false);
      if (now_ - since < kLongestCalm) continue;
      say_who_is_where();
      broken(text("a quorum is left and does not go on: ", words(last())));
    }
    return {last().epoch, settled(), now_ - since, last().epoch - before};
  }

 private:
  static constexpr int kStorm = 300;      // rounds
  static constexpr double kRound = 0.05;  // seconds
  static constexpr double kPatience = 10, kLongestCalm = 60;

  // ---- letters
  void send(size_t from, std::vector<Letter> letters) {
    for (Letter& l : letters) {
      const size_t to = process_of(l.to);
      require(to != from, "a letter to oneself");
      post(Happening::kLetter, from, to, std::move(l.bytes));
    }
    notice(from);
  }
  void deliver() {
    while (!happenings_.empty() && happenings_.top().at <= now_) {
      Happening h = std::move(const_cast<Happening&>(happenings_.top()));
      happenings_.pop();
      if (h.kind == Happening::kClaim)
        claim(h);
      else
        arrive(h);
    }
  }
  void arrive(Happening& h) {
    Process& p = processes_[h.to];
    if (!alive(p)) return;
    if (p.hung_until > now_) {
      h.at = p.hung_until;
      return happenings_.push(std::move(h));
    }
    if (h.kind == Happening::kAnswer) {
      if (p.in_cut != register_in_cut_ || !p.member) return;
      return send(h.to, p.member->register_says(*View::read(h.bytes)));
    }
    if (!linked(h.from, h.to)) return;
    if (p.member) return send(h.to, p.member->receive(id(h.from), h.bytes));
    const std::optional<View> v = View::read(h.bytes);
    if (v && v->has(id(h.to))) begin(h.to, *v);
  }
  void claim(Happening& h) {
    if (processes_[h.from].in_cut != register_in_cut_) return;
    const View asked = *View::read(h.bytes);
    const View& kept = register_.emplace(asked.epoch, asked).first->second;
    post(Happening::kAnswer, h.from, h.from, kept.write());
  }

  // ---- epochs
  void begin(size_t i, const View& v) {
    Process& p = processes_[i];
    const std::unique_ptr<Succession> old = std::move(p.member);
    p.member = std::make_unique<Succession>(id(i), v, options_, rules_);
    p.starts_at = HUGE_VAL;
    p.others.clear();
    for (const View::Member& m : v.members) p.others.push_back(process_of(m.id));
    p.heard.assign(v.members.size(), now_), p.suspected.assign(v.members.size(), false);
    if (v.members[size_t(v.rank(id(i)))].has_state)
      p.completed = p.oldest = v.step;
    else
      p.completed = v.step, p.oldest = kNoState;
    if (old)
      for (const View::Member& m : old->waiting()) p.member->joins(m);
    for (const size_t x : p.knows_dead) p.member->prove_dead(id(x));
    for (const size_t x : p.knows_leaving) p.member->leaves(id(x));
    for (const size_t x : p.knows_never) p.member->never_came(id(x));
    if (p.leaving) p.member->leaves(id(i));
  }
  // Looks whether something has been decided, and holds it against what others were told.
  void notice(size_t i) {
    Process& p = processes_[i];
    const Succession& s = *p.member;
    if (!s.next() || (p.starts_at < HUGE_VAL && !s.excluded()) || p.ends_at < HUGE_VAL) return;
    const View& v = *s.next();
    const View& known = history_.emplace(v.epoch, v).first->second;
    if (known != v)
      broken(text("two successors of epoch ", v.epoch - 1, ": ", words(known), ", and ", words(v)));
    if (prints_) say("process ", i, " is told of ", words(v));
    require(s.excluded() == !v.has(id(i)), "excluded() says something else than the view");
    if (s.excluded()) {
      p.ends_at = now_ + 2 * dice_.unit(), p.starts_at = HUGE_VAL;
      return;
    }
    if (v.members[size_t(v.rank(id(i)))].has_state) {
      require(v.step <= p.completed, "a view goes on from a step that a member has not completed");
      require(!in_step_ || p.completed <= v.step + 1, "more than a step of a survivor is lost");
      require(p.oldest <= v.step, "a member's state is counted on that it does not have");
    }
    p.starts_at = now_ + (dice_.chance(0.1) ? 0.5 * dice_.unit() : 0);
  }
  void turn_over(size_t i) {
    Process& p = processes_[i];
    if (now_ >= p.ends_at) {
      p.ended = true, p.provable = dice_.chance(0.75);
      say("process ", i, " ends");
    } else if (now_ >= p.starts_at) {
      begin(i, View(*p.member->next()));
    }
  }
  // ---- what a process does in a round
  void pass(bool storm) {
    now_ += kRound;
    loss_ = doubling_ = storm ? 0.05 : 0;
    if (storm && dice_.chance(harshness_)) harm();
    deliver();
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (!awake(processes_[i])) continue;
      turn_over(i);
      if (!alive(processes_[i])) continue;
      if (!processes_[i].member)
        knock(i, storm);
      else
        live(i, storm);
    }
  }
  void knock(size_t i, bool storm) {
    Process& p = processes_[i];
    if (now_ < p.knocks_at) return;
    p.knocks_at = now_ + 2;
    for (size_t x = 0; x < processes_.size(); ++x) {
      Process& o = processes_[x];
      if (!o.member || !awake(o) || !linked(i, x) || (storm && dice_.chance(0.3))) continue;
      o.member->joins({id(i), text("card ", i)});
      o.knows_waiting.insert(i);
    }
  }
  void live(size_t i, bool storm) {
    Process& p = processes_[i];
    listen(p, i);
    hear_of(p, i, storm);
    work(p, i);
    if (now_ >= p.asks_at)
      if (const auto v = p.member->wants_register()) {
        p.asks_at = now_ + 0.5;
        post(Happening::kClaim, i, i, v->write());
      }
    send(i, p.member->tick(now_));
  }
  // Heartbeats, which carry the epoch, so that who is in another one is silent in this.
  void listen(Process& p, size_t i) {
    Succession& s = *p.member;
    for (size_t r = 0; r < p.heard.size(); ++r) {
      const size_t x = p.others[r];
      const Process& o = processes_[x];
      const bool wrongly = p.heard[r] == -HUGE_VAL;
      if (!wrongly && hears(i, x) && o.member && o.member->now().epoch == s.now().epoch) p.heard[r] = now_;
      const bool silent = now_ - p.heard[r] > silence_;
      if (wrongly) p.heard[r] = now_ - silence_;
      if (silent == p.suspected[r]) continue;
      p.suspected[r] = silent;
      silent ? s.suspect(id(x)) : s.trust(id(x));
      if (silent) say("process ", i, " suspects ", x);
    }
    for (const size_t x : p.knows_waiting) {
      if (s.now().has(id(x))) continue;
      hears(i, x) ? s.trust(id(x)) : s.suspect(id(x));
    }
  }
  // Of deaths and departures, each process by itself.
  void hear_of(Process& p, size_t i, bool storm) {
    for (const size_t x : p.others) {
      const Process& o = processes_[x];
      if (x == i || !(o.provable || o.leaving || o.never) || !linked(x, i)) continue;
      if (storm && !dice_.chance(0.1)) continue;
      if (o.never && p.knows_never.insert(x).second) p.member->never_came(id(x));
      if (!alive(o) && o.provable && p.knows_dead.insert(x).second) p.member->prove_dead(id(x));
      if (alive(o) && o.leaving && p.knows_leaving.insert(x).second) p.member->leaves(id(x));
    }
  }
  void work(Process& p, size_t i) {
    Succession& s = *p.member;
    if (p.oldest == kNoState) {
      if (dice_.chance(0.1) && somebody_has_state(p, i)) p.completed = p.oldest = s.now().step, s.restored();
      return;
    }
    if (!dice_.chance(0.3) || (in_step_ && !all_have_completed(p))) return;
    const int64_t oldest = std::max(p.oldest, p.completed + 1 - int64_t(dice_.below(3)));
    const bool frozen = s.frozen();
    const bool counts = s.complete_step(p.completed + 1, oldest);
    require(counts != frozen, "a frozen member completes a step, or one that is not does not");
    if (counts) ++p.completed, p.oldest = oldest;
  }
  bool somebody_has_state(const Process& p, size_t i) const {
    for (const size_t x : p.others) {
      const Process& o = processes_[x];
      if (o.member && hears(i, x) && o.member->now() == p.member->now() && o.oldest != kNoState) return true;
    }
    return false;
  }
  bool all_have_completed(const Process& p) const {
    for (const size_t x : p.others) {
      const Process& o = processes_[x];
      if (!o.member || o.member->now().epoch < p.member->now().epoch) return false;
      if (o.member->now().epoch == p.member->now().epoch && o.completed < p.completed) return false;
    }
    return true;
  }

  const Rules rules_;
  Succession::Options options_;
  bool in_step_ = false;  // no member is more than a step ahead of another, as in synchronous training
  double silence_ = 0;    // seconds after which a member is suspected
  double harshness_ = 1;  // how often something goes wrong
  std::map<uint32_t, View> register_;
};

}  // namespace skein::comm::testing
