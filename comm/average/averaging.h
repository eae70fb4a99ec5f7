// Averaging of any vector over the ranks, without a model: push-sum, pairwise, all-reduce. Goes on without
// the lost.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/average/averager.h"
#include "comm/communicator/words.h"

namespace skein::comm {

Averaging parse_averaging(const std::string&);  // of gossip_avg's --algorithm; BadOption

struct AveragingOptions {
  Averaging algorithm = Averaging::kPushSum;
  int64_t rounds = 0;    // exactly so many gossips; 0: until
  double tolerance = 0;  // no element of any rank is further than this from the mean
  double relative = 0;   // instead, if above 0: than this share of the mean of its absolute values
  int64_t most_rounds = 100000;
  // The graph over so many members in a membership epoch (the first is 1). Not asked for all-reduce.
  std::function<std::unique_ptr<Topology>(int members, uint32_t epoch)> graph = {};
  std::function<Wish()> wish = {};  // none: kGoOn
  std::function<void(const std::string&)> say =
      {};  // a line when the membership changes; on every living rank
};

// One membership: from its first gossip to its last.
struct AveragingEpoch {
  uint32_t number = 1;        // on its messages
  int64_t from = 0;           // gossips before it
  std::vector<Rank> members;  // ranks of the communicator given to average()
  Mass begin, end;  // of the members; of an epoch that broke off, `end` is what the living hold of it
};

struct AveragingResult {
  int64_t rounds = 0;
  double error = 0;        // the largest distance of any element of any living rank from their mean
  double relative = 0;     // the same as a share of the element's size, where that is what counts
  double weight = 1;       // this rank's push-sum weight at the end
  double seconds = 0;      // of averaging, without what looking at the error took
  bool left = false;       // this rank wished to leave and has handed over what it held
  bool stopped = false;    // one of them wished to stop; x is as near to the mean as `error` says
  int64_t skipped = 0;     // shares that never came from living ranks, here
  int64_t bytes_sent = 0;  // by this rank
  struct Point {
    int64_t round = 0;
    uint32_t epoch = 1;
    double worst = 0, rms = 0;
  };
  std::vector<Point> trace;  // the distance from the mean after each gossip, and at the start of each epoch
  std::vector<AveragingEpoch> epochs;
  std::unique_ptr<Communicator>
      living;  // a group of those who are there at the end; none for a rank that left
};

// x <- an estimate of the mean over the ranks of x: f32, or the bits of doubles as i64 (numbers.h), which are
// averaged in double and travel whole, whatever the wire. The same rounds and error on every rank. Pairwise
// needs a graph of pairs (symmetric, one peer at most); BadOption otherwise. Throws Error where the tolerance
// is out of reach: after most_rounds, or when rounding or the graph lets it come no closer.
//
// When a rank is lost or leaves, the living take in what they had sent each other, divide X by w, and go on
// in the next membership epoch, over a new graph, toward the mean of what they then hold. Throws Timeout
// where one of them neither answers nor is gone.
AveragingResult average(Communicator&, const Tensor& x, const AveragingOptions&);

}  // namespace skein::comm
