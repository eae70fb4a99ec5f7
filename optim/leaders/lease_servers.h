// The servers of leases: one global, in worker 0 or a process of its own, one per group, in its first worker;
// and what a worker asks them.
#pragma once
#include <memory>
#include <vector>

#include "comm/communicator/communicator.h"
#include "optim/leaders/lease.h"

namespace skein::optim {

struct Served;  // served.h

namespace lease {
class GlobalServer;
class GroupServer;

// The groups of workers, and how many steps a cycle has; every `every`-th round is global.
struct Plan {
  std::vector<std::vector<int>> groups;
  int64_t steps = 0, every = 1;
};

// The global server of --servers dedicated, as the last member of `hub`, while goes_on() (served.h).
void serve(const Options&, comm::Communicator& hub, const Plan&, Served&);
}  // namespace lease

// A worker's leases, and the servers that it keeps, each a thread. They begin to serve when this worker asks
// for the first time: state that is loaded before that counts.
class Leases {
 public:
  // In a world of one there is no server. `hub`: with a dedicated server the workers and, last,
  // that server; else the same as `comm`. Collective.
  Leases(const Options&, comm::Communicator& comm, comm::Communicator& hub, const lease::Plan&);
  ~Leases();
  // kSteps: take one step. kGroupRound, kGlobalRound: take part in that, then ask again. Waits for the
  // slowest worker where a round is due; throws as Communicator::take.
  lease::Next next();
  // Gives back what is leased. A round to take part in first, or kMet, when all have come.
  lease::Next meet();
  // Whole only after kMet: nothing is leased then, neither by a worker nor by a group. When the membership
  // changes, each worker visits what it has taken of the cycle, from which all go on: what a lost worker took
  // is granted again.
  void visit(Archive&);

 private:
  lease::Next is_due(lease::Next);
  void end_round();
  void take_stock();
  lease::Answer ask(const lease::Word&);
  comm::Message take_answer();
  lease::Answer ask_oneself(const lease::Word&);
  void open();
  comm::Communicator& comm_;
  comm::Communicator& hub_;
  comm::Rank server_ = 0;  // of the own group
  int64_t sequence_ = 0, mine_ = 0;
  bool open_ = false, stepped_ = false;  // stepped_: has asked for a step since all met last
  const int64_t steps_;                  // of a cycle
  struct Past {
    int64_t rounds = 0, taken = 0;  // rounds that are over, and own steps since the last one
    bool inherited = false;         // both are of another epoch of the membership
  } past_;
  bool in_round_ = false;                        // one is due, or under way
  std::string invitation_;                       // to the global server's inbox
  lease::Standing standing_;                     // worker 0 visits it
  std::optional<lease::CycleBook> alone_;        // of a world of one
  std::unique_ptr<lease::GlobalServer> global_;  // worker 0, inline
  std::unique_ptr<lease::GroupServer> group_;    // first workers only
};

}  // namespace skein::optim
