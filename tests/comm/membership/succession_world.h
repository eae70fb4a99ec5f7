// A world of processes that fail in every way we know: letters are lost, doubled and late, processes are cut off,
// hang, die in bursts, leave and join, single links break, and some deaths look like silence. All follows from a seed.
// Large file: one class, whose processes, network, troubles and judgements all act on each other.
#pragma once
#include <algorithm>
#include <cmath>
#include <iostream>
#include <queue>

#include "comm/membership/succession.h"
#include "engine/base.h"

namespace skein::comm::testing {

// SplitMix64.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return size_t(next() % n); }
  double unit() { return double(next() >> 11) * 0x1p-53; }
  bool chance(double p) { return unit() < p; }
  double wait(double mean) { return -mean * std::log1p(-unit()); }

 private:
  uint64_t state_;
};

// Something that must never be, and the seed of the world in which it was.
struct Broken : Error {
  using Error::Error;
};

struct Process {
  std::unique_ptr<Succession> member;  // none: it has not been told of a view yet
  bool dead = false, leaving = false, provable = false, in_cut = false;
  bool ended = false;  // it was told that it is out, and has gone
  bool never = false;  // it went before it was told of its first view
  double hung_until = 0, ends_at = HUGE_VAL, starts_at = HUGE_VAL, asks_at = 0, knocks_at = 0;
  int64_t completed = 0, oldest = kNoState;
  std::vector<size_t> others;   // the processes of its view, by rank
  std::vector<double> heard;    // by rank
  std::vector<bool> suspected;  // by rank
  std::set<size_t> knows_dead, knows_leaving, knows_waiting, knows_never;  // processes
};

struct Happening {
  enum Kind : uint8_t { kLetter, kClaim, kAnswer };
  double at;
  int64_t number;  // of equal times, the first is first
  Kind kind;
  size_t from, to;
  std::string bytes;
  bool operator<(const Happening& o) const { return at != o.at ? at > o.at : number > o.number; }
};

class World {
 public:
  World(uint64_t seed, Rules rules, bool prints = false)
      : dice_(seed), rules_(rules), prints_(prints), has_register_(seed % 2 == 1) {
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
  static constexpr size_t kMostAlive = 10, kMostProcesses = 500;

  // Not in the order in which they come.
  static MemberId id(size_t process) { return (process * 377 + 123) % 1009 + 1; }
  static size_t process_of(MemberId m) {
    static const std::vector<size_t> table = [] {
      std::vector<size_t> t(1010);
      for (size_t i = 0; i < 1009; ++i) t[id(i)] = i;
      return t;
    }();
    return table.at(m);
  }
  std::string words(const View& v) const {
    std::string s = text("epoch ", v.epoch, " from step ", v.step, " of");
    for (const View::Member& m : v.members) s += text(" ", process_of(m.id), m.has_state ? "" : "?");
    return s;
  }
  template <class... A>
  void say(const A&... part) const {
    if (prints_) std::cout << now_ << ": " << text(part...) << "\n";
  }
  [[noreturn]] static void broken(const std::string& what) { throw Broken(what); }
  static void require(bool good, const char* what) {
    if (!good) broken(what);
  }

  const View& last() const { return history_.rbegin()->second; }
  bool alive(const Process& p) const { return !p.dead && !p.ended; }
  bool awake(const Process& p) const { return alive(p) && p.hung_until <= now_; }
  bool linked(size_t from, size_t to) const {
    return processes_[from].in_cut == processes_[to].in_cut &&
           (broken_links_.empty() || !broken_links_.count({from, to}));
  }
  bool hears(size_t i, size_t from) const { return awake(processes_[from]) && linked(from, i); }

  // ---- letters
  void post(Happening::Kind kind, size_t from, size_t to, std::string bytes) {
    if (dice_.chance(loss_)) return;
    if (dice_.chance(doubling_)) push(kind, from, to, bytes);
    push(kind, from, to, std::move(bytes));
  }
  void push(Happening::Kind kind, size_t from, size_t to, std::string bytes) {
    const double late = dice_.chance(0.02) ? 20 : 1;
    happenings_.push({now_ + dice_.wait(0.06) * late, number_++, kind, from, to, std::move(bytes)});
  }
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

  // ---- what goes wrong
  size_t pick_alive() {
    size_t i = dice_.below(processes_.size());
    for (size_t tries = 0; tries < processes_.size() && !alive(processes_[i]); ++tries)
      i = (i + 1) % processes_.size();
    return i;
  }
  size_t count_alive() const {
    size_t n = 0;
    for (const Process& p : processes_) n += alive(p);
    return n;
  }
  void kill(size_t i) {
    Process& p = processes_[i];
    if (!alive(p)) return;
    p.dead = true, p.provable = dice_.chance(0.75);
    say("process ", i, p.provable ? " dies" : " dies in silence");
  }
  void harm() {
    const size_t n = count_alive();
    if (n == 0) return;
    if (dice_.chance(0.004) && n > 2)
      for (size_t k = 0; k < n / 2; ++k) kill(pick_alive());
    const double r = dice_.unit();
    if (r < 0.006) {
      if (n > 1) kill(pick_alive());
    } else if (r < 0.014) {
      const size_t i = pick_alive();
      processes_[i].hung_until = now_ + dice_.wait(3);
      say("process ", i, " hangs until ", processes_[i].hung_until);
    } else if (r < 0.03) {
      for (Process& p : processes_) p.in_cut = dice_.chance(0.5);
      register_in_cut_ = dice_.chance(0.5);
      say("the network is cut");
    } else if (r < 0.045) {
      mend();
    } else if (r < 0.06 && n < kMostAlive && processes_.size() < kMostProcesses) {
      processes_.emplace_back();
    } else if (r < 0.065 && n > 1) {
      leave(pick_alive());
    } else if (r < 0.09) {
      suspect_wrongly(pick_alive());
    } else if (r < 0.1) {
      break_link();
    } else if (r < 0.115) {
      give_up(pick_alive());
    }
  }
  // A newcomer that has waited for too long, perhaps until it was in a view.
  void give_up(size_t i) {
    Process& p = processes_[i];
    if (!awake(p) || p.member) return;
    p.ended = p.never = true, p.provable = dice_.chance(0.5);
    say("process ", i, " gives up before it begins");
  }
  void break_link() {
    const size_t a = pick_alive(), b = pick_alive();
    if (a == b) return;
    broken_links_.insert({a, b});
    if (dice_.chance(0.5)) broken_links_.insert({b, a});
    say("nothing gets from process ", a, " to ", b);
  }
  void mend() {
    for (Process& p : processes_) p.in_cut = false;
    register_in_cut_ = false;
    broken_links_.clear();
  }
  // In some worlds a link stays broken: then one of its ends must go.
  void calm_down() {
    mend();
    for (Process& p : processes_) p.hung_until = 0;
    const size_t a = pick_alive(), b = pick_alive();
    if (a == b || !processes_[a].member || !processes_[b].member || !dice_.chance(0.25)) return;
    broken_links_ = {{a, b}, {b, a}};
    say("nothing gets from process ", a, " to ", b, " and back, for good");
  }
  void leave(size_t i) {
    Process& p = processes_[i];
    if (!awake(p) || !p.member) return;
    p.leaving = true;
    p.member->leaves(id(i));
    say("process ", i, " leaves");
  }
  void suspect_wrongly(size_t i) {
    Process& p = processes_[i];
    if (!awake(p) || !p.member) return;
    const size_t r = dice_.below(p.heard.size());
    p.heard[r] = -HUGE_VAL;
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

  // ---- at the end
  // All that live are in the last epoch, and nobody else is in it.
  bool settled() const {
    const View& v = last();
    bool somebody_stays = false;
    for (const Process& p : processes_) somebody_stays = somebody_stays || (alive(p) && !p.leaving);
    for (const View::Member& m : v.members)
      if (!alive(processes_[process_of(m.id)])) return false;
    for (const Process& p : processes_) {
      if (!alive(p) || stranded(p)) continue;
      if (!p.member || p.member->now() != v || p.member->next()) return false;
      if (!somebody_stays) continue;
      if (p.leaving || p.member->frozen() || std::count(p.suspected.begin(), p.suspected.end(), true))
        return false;
    }
    return true;
  }
  void say_who_is_where() const {
    for (size_t i = 0; i < processes_.size(); ++i) {
      const Process& p = processes_[i];
      if (alive(p))
        say("process ", i, p.leaving ? " wants to leave" : "",
            p.member && p.member->frozen() ? " is frozen" : "",
            p.member ? " in " + words(p.member->now()) : " waits");
    }
  }
  // It has missed so much that nobody it knows is in the last epoch, so that nobody can tell it.
  bool stranded(const Process& p) const {
    if (!p.member || p.member->now() == last()) return false;
    for (const View::Member& m : p.member->now().members) {
      const Process& o = processes_[process_of(m.id)];
      if (&o != &p && alive(o) && o.member && last().has(m.id) &&
          linked(process_of(m.id), size_t(&p - &processes_[0])))
        return false;
    }
    return true;
  }
  // What is left of the last epoch is a quorum. Where only those are left who leave, nothing needs to go on.
  bool can_go_on() const {
    const View& v = last();
    Census c{.members = int(v.members.size()), .all_others = true, .has_register = has_register_};
    bool somebody_stays = false;
    for (const View::Member& m : v.members) {
      const Process& p = processes_[process_of(m.id)];
      if (p.never) {
        --c.members;
        continue;
      }
      const bool dead = !alive(p) && p.provable;
      const bool here = alive(p) && p.member && p.member->now() == v;
      c.said += here, c.dead += dead;
      c.all_others = c.all_others && (dead || here);
      somebody_stays = somebody_stays || (here && !p.leaving);
    }
    for (const auto& [a, b] : broken_links_)
      if (a < b && v.has(id(a)) && v.has(id(b))) --c.said, c.all_others = false;
    return somebody_stays && is_quorum(c);
  }

  Dice dice_;
  const Rules rules_;
  const bool prints_, has_register_;
  Succession::Options options_;
  bool in_step_ = false;  // no member is more than a step ahead of another, as in synchronous training
  double silence_ = 0;    // seconds after which a member is suspected
  double harshness_ = 1;  // how often something goes wrong
  double now_ = 0, loss_ = 0, doubling_ = 0;
  bool register_in_cut_ = false;
  std::set<std::pair<size_t, size_t>> broken_links_;  // from, to
  int64_t number_ = 0;
  std::vector<Process> processes_;
  std::priority_queue<Happening> happenings_;
  std::map<uint32_t, View> history_, register_;
};

}  // namespace skein::comm::testing
