// The servers of leases: one global, in rank 0, one per group, in its first rank; and what a worker asks them.
#pragma once
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "optim/lease.h"

namespace skein::optim {

namespace lease {
class GlobalServer;
class GroupServer;
}  // namespace lease

// A worker's leases, and the servers that this rank keeps, each a thread. They begin to serve when this worker asks for
// the first time: state that is loaded before that counts.
class Leases {
 public:
  // `groups` as split_groups gives them, `steps` per cycle, every `every`-th round global. Without a communicator, or in
  // a world of one, nobody is asked. Collective.
  Leases(const Options&, comm::Communicator*, std::vector<std::vector<int>> groups, int64_t steps,
         int64_t every);
  ~Leases();
  // kSteps: take one step. kGroupRound, kGlobalRound: take part in that, then ask again. Waits for the slowest worker
  // where a round is due; throws as Communicator::take.
  lease::Next next();
  // Gives back what is leased. A round to take part in first, or kMet, when all have come.
  lease::Next meet();
  // Whole only after kMet: nothing is leased then, neither by a worker nor by a group.
  void visit(Archive&);

 private:
  lease::Answer ask(const lease::Word&);
  lease::Answer ask_oneself(const lease::Word&);
  void open();
  comm::Communicator* const comm_;
  comm::Rank server_ = 0;
  int64_t sequence_ = 0, mine_ = 0;
  std::string invitation_;                       // to the global server's inbox
  std::unique_ptr<lease::GlobalServer> global_;  // rank 0 only
  std::unique_ptr<lease::GroupServer> group_;    // first ranks only
};

}  // namespace skein::optim
