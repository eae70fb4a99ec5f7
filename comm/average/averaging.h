// Averaging of any vector over the ranks, without a model: push-sum, pairwise, all-reduce. With a council it
// survives the loss of ranks.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/average/averager.h"
#include "comm/communicator/words.h"
#include "comm/membership/council.h"

namespace skein::comm {

Averaging parse_averaging(const std::string&);  // the value of gossip_avg's --algorithm; throws BadOption

struct AveragingOptions {
  Averaging algorithm = Averaging::kPushSum;
  int64_t rounds = 0;    // the number of gossips; 0: as many as one of the two goals below takes
  double tolerance = 0;  // no element of any rank is further than this from the mean
  double relative = 0;   // if above 0, this instead: a share of the mean of the element's absolute values
  int64_t most_rounds = 100000;
  // The graph over so many members in a membership epoch (the first is 1). All-reduce needs none.
  std::function<std::unique_ptr<Topology>(int members, uint32_t epoch)> graph = {};
  std::function<Wish()> wish = {};  // empty: kGoOn
  // Is given a line when the membership changes, on the first of the living ranks.
  std::function<void(const std::string&)> say = {};
};

// One membership: from its first gossip to its last.
struct AveragingEpoch {
  uint32_t number = 1;        // which its messages carry
  int64_t from = 0;           // how many gossips came before it
  std::vector<Rank> members;  // the ranks that they had in the first epoch
  Mass begin, end;            // of all members; after an epoch that broke off, `end` is what the living hold
};

struct AveragingResult {
  int64_t rounds = 0;
  double error = 0;        // the largest distance of any element of any living rank from their mean
  double relative = 0;     // the same as a share of the element's size, where that is what counts
  double weight = 1;       // this rank's push-sum weight at the end
  double seconds = 0;      // spent averaging, without measuring the error
  bool left = false;       // this rank wished to leave and has handed over what it held
  bool stopped = false;    // a rank wished to stop; x is as near to the mean as `error` says
  int64_t skipped = 0;     // shares of living ranks that never came to this one
  int64_t bytes_sent = 0;  // by this rank
  struct Point {
    int64_t round = 0;
    uint32_t epoch = 1;
    double worst = 0, rms = 0;
  };
  std::vector<Point> trace;  // the distance from the mean after each gossip, and at the start of each epoch
  std::vector<AveragingEpoch> epochs;
  std::unique_ptr<Communicator> living;  // the members of the last epoch; null on one that left
};

// x <- an estimate of the mean of x over the ranks. x holds f32, or the bits of doubles as i64 (numbers.h),
// which are averaged in double and never rounded for the wire. Rounds and error are the same on every rank.
// Pairwise needs a graph of pairs (symmetric, at most one peer), else it throws BadOption. Throws Error if
// the tolerance is out of reach: after most_rounds, or when rounding or the graph keeps x from coming closer;
// and if a rank is lost or does not answer.
AveragingResult average(Communicator&, const Tensor& x, const AveragingOptions&);

// The same by the members of one epoch of the membership after the other. When a member is lost or leaves,
// the council chooses the others, who connect, take in what they had sent each other, divide X by w, and go
// on over a new graph, toward the mean of what they then hold.
class AveragingRun {
 public:
  // `me`: the rank of this worker in the first epoch, by which all results name it.
  AveragingRun(Rank me, const Tensor& x, AveragingOptions);

  // Gossips until the goal is reached. False if the members are about to change before: then the next call is
  // due, with those whom the council has chosen. What the last call has used must live until `begun`. Throws
  // Error if a rank does not answer and none is lost. Without a council any loss is an error, and a member
  // that wishes to leave stops all.
  bool epoch(Communicator& members, Council*, const std::function<void()>& begun = {});
  // After the last epoch.
  AveragingResult finish();

 private:
  void hand_over(std::unique_ptr<Communicator> next);
  void begin();
  bool gossip();
  bool finished() const;
  double look();
  bool part();
  bool breaks_off(const std::string& why);
  std::vector<Rank> ranks_in(const View& past) const;
  std::string why_without(const std::vector<Rank>& living) const;
  std::string out_of_reach(double best) const;
  Circle circle(Communicator&) const;

  const Rank me_;
  const AveragingOptions o_;
  const Tensor given_;
  Council* council_ = nullptr;
  View view_;                          // of the last epoch that has begun
  std::vector<Rank> names_, leaving_;  // of its members: ranks of the first epoch; ranks in it
  Tensor x_;                           // in memory of the members' allocator
  std::unique_ptr<Communicator> members_;
  std::unique_ptr<Averager> averager_;
  AveragingResult result_;
  int64_t cycle_ = 1;
  std::string parted_;  // how members have left
};

}  // namespace skein::comm
