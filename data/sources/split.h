// How training samples are dealt out to workers: by turns from one deck, or in shards of unequal labels.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace skein::data {

// --split.
//   iid           one order of all samples an epoch, of which every worker takes its part of each global
//                 batch
//   dirichlet:A   of each class worker r gets a share p_r, p drawn from a symmetric Dirichlet distribution
//                 of concentration A (Hsu, Qi & Brown 2019; Yurochkin et al. 2019): the smaller A, the more
//                 unequal
//   major:F       shards of one size, of each at least a fraction F from one class, class r mod classes for
//                 worker r; the rest is what remains, at random
struct SplitRule {
  enum Kind : uint8_t { kIid, kDirichlet, kMajor } kind = kIid;
  double value = 0;  // A or F
};
// Throws BadOption: none of the three, A <= 0, F outside 0..1.
SplitRule parse_split(const std::string&);

// The samples of each worker, ascending. Every sample is in one shard.
using Shards = std::vector<std::vector<int64_t>>;
// A pure function of its arguments. Throws BadOption: a worker without samples, classes too small for F.
Shards make_shards(const std::vector<int32_t>& labels, int classes, const SplitRule&, int world,
                   uint64_t seed);
std::vector<int32_t> labels_of(const DataSource&);
// Of each shard, how many samples of each class.
std::vector<std::vector<int64_t>> histograms(const Shards&, const std::vector<int32_t>& labels, int classes);

// Which samples each worker's steps hold. Pure functions, so resuming needs no state. Steps count from the
// beginning of the training.
class Portions {
 public:
  // One deck: sampler.h. `batch` is one worker's.
  Portions(int64_t size, int64_t batch, int world, uint64_t seed);
  // Shards, each in an order of its own every epoch. An epoch has the steps of the largest; a worker whose
  // shard is used up has no samples until the next.
  Portions(Shards, int64_t batch, uint64_t seed);

  int64_t steps_per_epoch() const { return steps_; }
  int64_t samples(int64_t step, int rank) const;  // in this worker's batch
  int64_t samples(int64_t step) const;            // over all workers, at least one
  int64_t index(int64_t step, int rank, int64_t row) const;
  const Shards& shards() const { return shards_; }  // empty: one deck

 private:
  const int64_t size_ = 0, batch_;
  const int world_;
  const uint64_t seed_;
  const Shards shards_;
  int64_t steps_ = 0;
};

}  // namespace skein::data
