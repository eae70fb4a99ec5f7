// What goes wrong in the world: processes die, hang, leave, come and give up, the network is cut,
// and links break.
#pragma once
#include "tests/comm/membership/succession_stage.h"

namespace skein::comm::testing {

class Troubled : protected Stage {
 protected:
  using Stage::Stage;
  static constexpr size_t kMostAlive = 10, kMostProcesses = 500;

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
};

}  // namespace skein::comm::testing
