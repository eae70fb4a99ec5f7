// Averager: one membership epoch of averaging, gossip after gossip among the same members until
// one is missing.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "comm/communicator/communicator.h"
#include "comm/topology/topology.h"

namespace skein::comm {

enum class Averaging : uint8_t { kPushSum, kPairwise, kAllReduce };

// What a worker wants to do next. It is asked after every gossip.
enum class Wish : uint8_t { kGoOn, kLeave, kStop };

// The sums that no gossip changes: those of the push-sum weights and of all numbers of all X.
struct Mass {
  double w = 0, x = 0;
};

// How far the members are from the mean, and what they want to do next; the same on every member.
struct Spread {
  double worst = 0;     // largest distance of any number of any member
  double relative = 0;  // the same as a share of the number's size, if Averager knows sizes
  double rms = 0;       // root of the mean square distance
  std::vector<Wish> wishes;
};

// The members of one epoch of the membership, and a function that every wait calls, which throws EpochEnds
// when they are about to change.
struct Circle {
  Communicator& comm;
  std::function<void()> require_unchanged = [] {};
};

// Waits like Communicator::take, but ends as soon as any member is lost or has left. Throws PeerLost,
// EpochEnds, and Timeout after `patience` seconds.
Message await(const Circle&, Rank from, Tag, int64_t step, double patience, const Tensor& like);

// Returns every member's numbers to every member, with waits of the same kind. Collective; `step`
// counts its calls.
std::vector<std::vector<double>> tell(const Circle&, const std::vector<double>& mine, int64_t step);

// X and w of this rank. Except for the last two groups, all members make all calls in the same order. A
// call that throws PeerLost or EpochEnds leaves (X, w) whole: what was not sent stays here, and absorb()
// fetches what had been sent here.
class Averager {
 public:
  // Changes X in place: numbers as in numbers.h, in memory of members.allocator(). `graph` connects the
  // members; null for all-reduce. `epoch` is the membership's number.
  Averager(Circle members, std::unique_ptr<Topology> graph, const Tensor& x, Averaging, uint32_t epoch);

  // Comes first: computes the mean exactly and, `with_sizes`, each number's size, the mean of
  // its absolute values.
  void meet(bool with_sizes);
  double largest() const;  // the mean's largest number, in absolute value
  void round();
  Spread look(Wish mine);
  Mass mass();        // of all members together
  Mass held() const;  // of this member alone; not collective
  int64_t rounds() const { return done_; }

  double weight() const { return w_; }
  void divide();                                             // X <- X / w, w <- 1
  int64_t skipped() const { return int64_t(owed_.size()); }  // shares that have not come

  // ---- leaving in good order ------------------------------------------------------------------------------
  void bequeath(Rank heir);    // sends all of (X, w) to that member
  void inherit(Rank leaving);  // adds what a leaving member sent

  // ---- after a loss ---------------------------------------------------------------------------------------
  // Each of the living, who are the members of the next epoch, adds all that the others of them had sent it.
  // `ranks` are theirs in this epoch. Collective over `living`.
  void absorb(const Circle& living, const std::vector<Rank>& ranks);

 private:
  void push_sum(const Mix&);
  void send_share(const Edge&);
  void pair(Rank peer);
  void add(const Message&);
  void average_in(const Message&);
  bool near(Rank peer) const;
  bool awaited(Rank peer) const;
  void fetch(const Circle& living, Rank peer);
  double patience() const { return 0.75 * circle_.comm.options().deadline; }
  void exact_mean(const Tensor& x);
  void exact_mean_of_doubles(const Tensor& x);

  const Circle circle_;
  const std::unique_ptr<Topology> graph_;
  const Tensor x_, mean_;
  Tensor size_;    // each number's; empty if sizes are not asked for
  Tensor before_;  // all-reduce: X as it was, because a sum that breaks off destroys it
  const Averaging algorithm_;
  const uint32_t epoch_;
  double w_ = 1;
  int64_t pushed_ = 0, done_ = 0, told_ = 0;  // gossips sent, gossips finished, calls of tell
  int64_t means_ = 0;                         // exact means of doubles so far
  std::set<Rank> taken_;                      // in-peers of gossip done_ whose share has been added
  std::set<std::pair<Rank, int64_t>> owed_;   // shares that did not come in time
};

}  // namespace skein::comm
