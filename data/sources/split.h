// How training samples are distributed to workers: from one common order, or in shards of unequal labels.
#pragma once
#include <string>
#include <vector>

#include "data/sampler.h"
#include "data/source.h"

namespace skein::data {

// --split.
//   iid           one order of all samples per epoch; every worker takes its part of each global batch
//   dirichlet:A   worker r gets a share p_r of each class, p drawn from a symmetric Dirichlet distribution
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
// The number of samples of each class in each shard.
std::vector<std::vector<int64_t>> histograms(const Shards&, const std::vector<int32_t>& labels, int classes);

// What was left of an epoch when workers at different steps went on as others, in the order in which it is
// dealt to these: positions of the common order.
struct Leftover {
  int64_t epoch = -1;           // negative: no epoch was dealt again
  std::vector<Span> positions;  // they ascend; none is empty, none touches the one before

  int64_t size() const;
  std::string write() const;                         // "3 100-200 350-400"; empty: no epoch
  static Leftover read(const std::string& written);  // throws Error unless it is such a text
  bool operator==(const Leftover&) const = default;
};

// Which samples each worker's steps hold. Pure functions, so resuming needs no state but the leftover of an
// epoch that was dealt again. Steps count from the beginning of the training.
class Portions {
 public:
  // One common order (sampler.h). `global_batch` is that of all workers, whose shares differ by at most one,
  // until share_out() says otherwise.
  Portions(int64_t size, int64_t global_batch, int world, uint64_t seed);
  // Shards, each with its own order in every epoch. `batch` is that of one worker. An epoch has as many steps
  // as the largest shard; a worker whose shard is used up has no samples until the next epoch.
  Portions(Shards, int64_t batch, uint64_t seed);

  int64_t steps_per_epoch() const { return steps_; }
  int64_t samples(int64_t step, int rank) const;  // samples in this worker's batch
  int64_t samples(int64_t step) const;            // over all workers, at least one
  int64_t index(int64_t step, int rank, int64_t row) const;
  const Shards& shards() const { return shards_; }  // empty for one common order

  // From now on whole steps are split into these shares, which add up to the global batch, and smaller ones
  // in proportion; one order is common to all. No thread may read meanwhile.
  void share_out(const std::vector<int64_t>& shares);
  int64_t share_of(int rank) const;              // of a whole step
  std::vector<int64_t> shares() const;           // of all workers
  bool even() const { return before_.empty(); }  // they differ by at most one, lower ranks first

  // What is left of this epoch when each worker r has taken its steps before taken[r]. Of one common order.
  Leftover left_of(int64_t epoch, const std::vector<int64_t>& taken) const;
  // From now on that epoch has only these samples, in this order. The number of its steps does not change:
  // those before first_of() are taken, and it may have fewer samples than others. No thread may read it
  // meanwhile. Throws BadOption if they are not samples of this data set, or there are shards.
  void deal_again(Leftover);
  int64_t first_of(const Leftover&) const;  // the step with which workers go on that share it
  const Leftover& leftover() const { return leftover_; }

 private:
  Span whole(int64_t step) const;  // of all workers, in the order in which the epoch is dealt
  Span part(int64_t step, int rank) const;
  int64_t position(int64_t epoch, int64_t dealt) const;
  int64_t taken_of(int64_t epoch) const { return epoch == leftover_.epoch ? size_ - left_ : 0; }
  const int64_t size_ = 0, batch_;  // of one common order: the global batch; of shards: that of one worker
  const int world_;
  const uint64_t seed_;
  const Shards shards_;
  int64_t steps_ = 0;
  std::vector<int64_t> before_;  // as in part_of(); empty: even shares
  Leftover leftover_;
  int64_t left_ = 0;  // its size
};

}  // namespace skein::data
