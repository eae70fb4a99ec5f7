// Hearing: which workers of a simulated world do not hear which others, and since when.
#pragma once
#include <map>
#include <set>

#include "comm/sim/network.h"

namespace skein::comm::sim {

// A worker is not heard of while it is dead or hangs, or while a link to the hearer is cut. Baton and network
// outlive it, and it outlives the events that the baton still runs.
class Hearing {
 public:
  using Worker = Baton::Worker;
  // An event: `by`, which may be dead itself, has heard nothing of `of` for so many seconds.
  using Silence = std::function<void(Worker by, Worker of, double seconds)>;
  // `silence` is called when one has lasted for so many seconds, unless the hearer hangs.
  Hearing(Baton& b, const Network& n, double patience, Silence silence)
      : baton_(b), network_(n), patience_(patience), silence_(std::move(silence)) {}

  // Those are the workers 1 to `last`.
  void has(Worker last) { last_ = last; }
  void dies(Worker w) { dead_.insert(w); }
  bool is_dead(Worker w) const { return dead_.count(w) > 0; }
  // Between w and all others, to be called when one of these may have changed.
  void listen(Worker w);
  // It has hung until now, and cannot tell the silence of others from its own absence.
  void forgive(Worker w);

 private:
  void expect(Worker by, Worker of);

  Baton& baton_;
  const Network& network_;
  const double patience_;
  const Silence silence_;
  Worker last_ = 0;
  std::set<Worker> dead_;
  std::map<std::pair<Worker, Worker>, Clock::time_point> unheard_;  // since when the first hears no second
};

}  // namespace skein::comm::sim
