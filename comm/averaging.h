// Averaging of any vector over the ranks, without a model: push-sum, pairwise, all-reduce.
#pragma once
#include "comm/communicator.h"
#include "comm/topology.h"

namespace skein::comm {

enum class Averaging : uint8_t { kPushSum, kPairwise, kAllReduce };
Averaging parse_averaging(
    const std::string&);  // "push-sum", "pairwise", "allreduce"; BadOption with the nearest

struct AveragingOptions {
  Averaging algorithm = Averaging::kPushSum;
  int64_t rounds = 0;    // exactly so many gossips; 0: until
  double tolerance = 0;  // no element of any rank is further than this from the mean
  int64_t most_rounds = 100000;
};

struct AveragingResult {
  int64_t rounds = 0;
  double error = 0;    // the largest distance of any element of any rank from the mean
  double weight = 1;   // this rank's push-sum weight at the end
  double seconds = 0;  // of averaging, without what checking the tolerance took
};

// x <- an estimate of the mean over the ranks of x. The same rounds and error on every rank. Pairwise needs a graph of
// pairs (symmetric, one peer at most); BadOption otherwise. all-reduce takes no graph. Throws Error where the tolerance
// is out of reach: after most_rounds, or when fp32 gets no closer.
AveragingResult average(Communicator&, const Topology*, const Tensor& x, const AveragingOptions&);

// Every rank's numbers, in rank order, on every rank; as many from each. Collective.
std::vector<std::vector<double>> gather_numbers(Communicator&, const std::vector<double>& mine);

}  // namespace skein::comm
