// Consensus: the mean over the workers, and how far they are from it.
#pragma once
#include "comm/communicator/communicator.h"
#include "engine/tensor.h"

namespace skein::optim {

// x <- the mean over the ranks of x, in which this rank's counts for `weight`: the weights add up to 1, or
// all are 0 and every rank counts the same.
[[nodiscard]] comm::Pending weighed_mean(comm::Communicator&, const Tensor& x, double weight);

// y <- that mean of x; x is left alone. The same bits on every rank. Collective.
void consensus(comm::Communicator&, const Tensor& x, const Tensor& y, double weight = 0);

// sqrt( mean over the ranks of |x_i - mean|^2 / count ), count the number of real parameters: contracts
// section 5. Collective; the same number on every rank.
double consensus_distance(comm::Communicator&, const Tensor& x, const Tensor& mean, int64_t count);

}  // namespace skein::optim
