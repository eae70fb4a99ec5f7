// Hearing: one alarm for each beginning of a silence, which finds out whether that silence still lasts.
#include "comm/sim/hearing.h"

namespace skein::comm::sim {

void Hearing::listen(Worker w) {
  const auto look = [&](Worker by, Worker of) {
    if (!is_dead(of) && !baton_.hangs(of) && network_.reaches(of, by))
      unheard_.erase({by, of});
    else if (unheard_.emplace(std::pair(by, of), baton_.now()).second)
      expect(by, of);
  };
  for (Worker other = 1; other <= last_; ++other)
    if (other != w) look(w, other), look(other, w);
}

void Hearing::forgive(Worker w) {
  for (auto& [pair, since] : unheard_)
    if (pair.first == w) since = baton_.now(), expect(pair.first, pair.second);
}

void Hearing::expect(Worker by, Worker of) {
  const Clock::time_point since = unheard_.at({by, of});
  baton_.at(baton_.now() + in_seconds(patience_), [this, by, of, since] {
    const auto u = unheard_.find({by, of});
    if (u == unheard_.end() || u->second != since || baton_.hangs(by)) return;
    silence_(by, of, std::chrono::duration<double>(baton_.now() - since).count());
  });
}

}  // namespace skein::comm::sim
