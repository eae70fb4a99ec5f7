// Ledger: how many steps each worker has taken for good, as far as this worker knows.
#pragma once
#include <cstdint>
#include <vector>

#include "apps/train/run.h"

namespace skein::apps {

// Asynchronous workers are at different steps. When one is lost, the others must know which of its images
// have had a lasting effect. A step is taken for good once something has been sent to another worker during a
// later step, because that contains it: what worker 0 sends to the center that it keeps itself is known to
// others only when they have had the center since. So each worker tells the others after such a step. A death
// then repeats only the lost worker's steps that it had not told of: one, if every step sends.
class Ledger {
 public:
  explicit Ledger(Run& run) : run_(run) {}
  // Between two steps: the next one is run.k. Returns whether it has told the others of its steps but for the
  // last one. Throws PeerLost, EpochEnds.
  bool begin_step();
  // By rank; this worker's own are those that it has taken. It never waits, and may be called when an
  // epoch has ended.
  std::vector<int64_t> taken();

 private:
  int64_t sent() const { return run_.comm().meter().traffic().to_others; }
  void hear();

  Run& run_;
  std::vector<int64_t> taken_;
  int64_t sent_ = -1;  // messages before the last step; negative: there was none
};

}  // namespace skein::apps
