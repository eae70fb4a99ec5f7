// A world of processes with a network between them: who lives, who reaches whom, and letters that are lost,
// doubled and late.
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
// The state of the world, and what all of its parts ask it. All chance is drawn from its dice.
class Stage {
 protected:
  Stage(uint64_t seed, bool prints) : dice_(seed), prints_(prints), has_register_(seed % 2 == 1) {}

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

  void post(Happening::Kind kind, size_t from, size_t to, std::string bytes) {
    if (dice_.chance(loss_)) return;
    if (dice_.chance(doubling_)) push(kind, from, to, bytes);
    push(kind, from, to, std::move(bytes));
  }
  void push(Happening::Kind kind, size_t from, size_t to, std::string bytes) {
    const double late = dice_.chance(0.02) ? 20 : 1;
    happenings_.push({now_ + dice_.wait(0.06) * late, number_++, kind, from, to, std::move(bytes)});
  }
  Dice dice_;
  const bool prints_, has_register_;
  double now_ = 0, loss_ = 0, doubling_ = 0;
  bool register_in_cut_ = false;
  std::set<std::pair<size_t, size_t>> broken_links_;  // from, to
  int64_t number_ = 0;
  std::vector<Process> processes_;
  std::priority_queue<Happening> happenings_;
  std::map<uint32_t, View> history_;
};

}  // namespace skein::comm::testing
