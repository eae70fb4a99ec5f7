// Legacy: what a worker takes along from one epoch of the membership into the next.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "apps/report/metrics.h"
#include "comm/communicator/communicator.h"
#include "comm/membership/view.h"
#include "data/source.h"
#include "data/sources/split.h"
#include "optim/snapshot.h"

namespace skein::apps {

// Large class: the list of what a worker takes along, each for another part of a training.
struct Legacy {
  // Of this worker alone.
  bool founder = false;    // it was in the first epoch
  bool has_state = false;  // false: a newcomer, or a worker too many steps ahead to go back
  optim::Snapshot state;   // after the steps that the next epoch begins with
  data::Split data;        // opened images
  double left_at = 0;      // clock_seconds() when it left the last epoch
  // Of members of that epoch that it had lost: for how long they had been silent then, in seconds.
  std::map<comm::MemberId, double> silences;
  double speed = 0;  // in proportion to which it is dealt images; 0: not known, or all are dealt the same

  // Of asynchronous rows: which steps of that epoch were taken, as far as this worker knows.
  struct Apart {
    int epoch = 0;               // of the membership; 0: this worker was in none
    std::vector<int64_t> taken;  // Ledger::taken()
    int64_t closed = 0;          // epochs of data that all had completed
    std::shared_ptr<const data::Portions> portions;
  } apart;

  // The same on all workers once they have shared it.
  std::string directory;  // the run's
  int workers_at_first = 0, workers_before = 0;
  int64_t global_batch = 0;
  std::vector<int64_t> shares;  // of the next epoch's workers in the global batch; empty: as even as can be
  std::vector<ChangeEvent> changes;  // of the membership; the last one is under way
  comm::View before;                 // the epoch before, from which it says who is lost
  std::string leftover;              // data::Leftover of the epoch that the next step belongs to
  int64_t step = -1;                 // the next one, of asynchronous rows; negative: the view says it
  int64_t closed_epochs = 0;         // of asynchronous rows

  // With which the next epoch begins; `agreed`: as the view says.
  int64_t first_step(int64_t agreed) const { return step < 0 ? agreed : step; }
  // Loads by the walk the state that the workers of `comm`, the next epoch's, have taken along: each keeps
  // its own part, and newcomers get the mean (docs/elastic.md). Returns how much of push-sum's w went with
  // those who are no more. Collective. Throws Error on all workers if none has any.
  double restore(comm::Communicator& comm, const std::string& algorithm, const optim::Walk&) const;
  // Whether the workers of `comm`, the next epoch's, continue a run. If not, all that had its state were lost
  // before the first step, and they begin it. `agreed`: as the view says. Collective.
  bool goes_on(comm::Communicator& comm, int64_t agreed) const;
  // The epoch that begins is `now`: all take over what the first that was in the run knows of it. Collective.
  void share(comm::Communicator&, const comm::View& now);

 private:
  int teller(comm::Communicator&) const;
  void enter(const comm::View&);
  std::optional<double> detected(comm::Communicator&, const comm::View& now) const;
  optim::Snapshot::Fields fields_with_center(comm::Communicator&) const;
  Json words_of_apart() const;
  void deal_again(comm::Communicator&);
  Json take_stock(const Json& all) const;
  std::vector<int64_t> shares_of(comm::Communicator&) const;
};

}  // namespace skein::apps
