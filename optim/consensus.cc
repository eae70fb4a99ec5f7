// The mean of the models, for evaluation, and the distance from it.
#include "optim/consensus.h"

#include <cmath>

#include "engine/vectors/vec.h"

namespace skein::optim {

comm::Pending weighed_mean(comm::Communicator& comm, const Tensor& x, double weight) {
  if (weight == 0) return comm.mean(x);
  scale(x, weight);
  return comm.all_reduce(x);
}

void consensus(comm::Communicator& comm, const Tensor& x, const Tensor& y, double weight) {
  copy(y, x);
  weighed_mean(comm, y, weight).wait();
}

double consensus_distance(comm::Communicator& comm, const Tensor& x, const Tensor& mean, int64_t count) {
  if (comm.size() == 1) return 0;
  const Tensor off = x.clone();
  axpy(off, -1.f, mean);
  const Tensor square = Tensor::of<float>({1}, {float(dot(off, off))});
  comm.all_reduce(square).wait();
  return std::sqrt(double(square.item()) / comm.size() / double(count));
}

}  // namespace skein::optim
