// Whether a world has come to rest, and whether it ought to.
#pragma once
#include "tests/comm/membership/succession_troubles.h"

namespace skein::comm::testing {

class Judged : protected Troubled {
 protected:
  using Troubled::Troubled;

  // All that live are in the last epoch, and no others.
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
  // It has missed so much that no member it knows is in the last epoch, so that none can tell it.
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
};

}  // namespace skein::comm::testing
