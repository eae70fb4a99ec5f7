// Averager: one membership epoch of averaging. Gossip after gossip among the same members, until one is
// missing.
#pragma once
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "comm/communicator/communicator.h"
#include "comm/topology/topology.h"

namespace skein::comm {

enum class Averaging : uint8_t { kPushSum, kPairwise, kAllReduce };

// What a worker would do next; asked after every gossip.
enum class Wish : uint8_t { kGoOn, kLeave, kStop };

// Sums that no gossip changes: of the push-sum weights, and of all numbers of all X.
struct Mass {
  double w = 0, x = 0;
};

// How far the members are from the mean, and what they wish; the same on every member.
struct Standing {
  double worst = 0;     // largest distance of any number of any member
  double relative = 0;  // the same as a share of the number's size, if sizes are asked for
  double rms = 0;       // root of the mean square distance
  std::vector<Wish> wishes;
};

// Waits like Communicator::take, but gives up as soon as any member of `c` is lost or has left. Throws
// PeerLost, and Timeout after `patience` seconds.
Message await(Communicator& c, Rank from, Tag, int64_t step, double patience);

// Every member's numbers on every member, in the same manner. Collective; `step` counts its calls.
std::vector<std::vector<double>> tell(Communicator&, const std::vector<double>& mine, int64_t step);

// X and w of this rank. All calls but the last two groups are collective over `members`, in the same order. A
// call that throws PeerLost leaves (X, w) whole: what was not sent stays, and absorb() fetches what had been
// sent to it.
class Averager {
 public:
  // X, numbers as in numbers.h in memory of members.allocator(), is changed in place. `graph`: over the
  // members; null for all-reduce. `epoch`: the membership's number.
  Averager(Communicator& members, std::unique_ptr<Topology> graph, const Tensor& x, Averaging,
           uint32_t epoch);

  // First of all: what is the mean? And, `with_sizes`, how large is each number, the mean of its absolute
  // values.
  void meet(bool with_sizes);
  double largest() const;  // number of the mean, in absolute value
  void round();
  Standing look(Wish mine);
  Mass mass();        // of all members together
  Mass held() const;  // of this one; not collective
  int64_t rounds() const { return done_; }

  double weight() const { return w_; }
  void divide();                                             // X <- X / w, w <- 1
  int64_t skipped() const { return int64_t(owed_.size()); }  // shares that have not come

  // ---- leaving in good order ------------------------------------------------------------------------------
  void bequeath(Rank heir);    // all of (X, w) goes to it
  void inherit(Rank leaving);  // takes it

  // ---- after a loss ---------------------------------------------------------------------------------------
  // Each of the living takes in all that the others of them had sent it. Collective over `living`, a group of
  // the members; `ranks` says which.
  void absorb(Communicator& living, const std::vector<Rank>& ranks);

 private:
  void push_sum(const Mix&);
  void send_share(const Edge&);
  void pair(Rank peer);
  void add(const Message&);
  void average_in(const Message&);
  bool near(Rank peer) const;
  bool awaited(Rank peer) const;
  void fetch(Communicator& living, Rank peer);
  double patience() const { return 0.75 * members_.options().deadline; }
  void exact_mean(const Tensor& x);
  void exact_mean_of_doubles(const Tensor& x);

  Communicator& members_;
  const std::unique_ptr<Topology> graph_;
  const Tensor x_, mean_;
  Tensor size_;    // of each number; empty if it is not asked for
  Tensor before_;  // all-reduce: X as it was, for what a broken sum leaves is nothing
  const Averaging algorithm_;
  const uint32_t epoch_;
  double w_ = 1;
  int64_t pushed_ = 0, done_ = 0, told_ = 0;  // gossips sent, gossips finished, calls of tell
  int64_t means_ = 0;                         // of doubles
  std::set<Rank> taken_;                      // in-peers of gossip done_ whose share has been added
  std::set<std::pair<Rank, int64_t>> owed_;   // shares that did not come in time
};

}  // namespace skein::comm
