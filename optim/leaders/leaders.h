// Leaders: groups of workers, the one with the smallest recent loss, and the pull toward it.
#pragma once
#include <memory>
#include <vector>

#include "comm/communicator/communicator.h"
#include "optim/strategy.h"

namespace skein::optim {

// A running mean over the last `length` losses of those that were seen.
class LossWindow {
 public:
  explicit LossWindow(int64_t length, Device = {});
  void see(const Tensor& loss);  // one element, on that device; waits for nothing
  double mean() const;           // +inf before the first; reads the losses back
  void visit(Archive&);

 private:
  Tensor ring_;
  int64_t seen_ = 0;
};

// The position of the smallest finite loss, the first of equal ones; -1 if none is finite.
int elect(const std::vector<double>& losses);

// Ranks 0 to world-1 as lists in rank order: runs of consecutive ranks whose lengths differ by one at most.
// BadOption: more groups than workers.
std::vector<std::vector<int>> split_groups(int world, int64_t groups);
// The same ranks, those of one host each; one group where the transport does not tell hosts apart.
std::vector<std::vector<int>> split_by_host(int world, comm::Communicator&);

// The leader of some workers as each of them sees it: A, where the last one was (at first x_0), and the
// pulls toward it.
class Leader {
 public:
  // The leader of the workers of the communicator. `c` is the strength of the pull in a round, `proximal`
  // that of the pull after a step; with `buffers` running statistics are pulled as x is.
  Leader(comm::Communicator&, const Worker& me, double c, double proximal, bool buffers);
  // Collective: x <- x + c (z - x), where z is the x of the worker with the smallest of these losses, which
  // are one a worker. A leader keeps every bit. If no loss is finite it does nothing and returns false.
  bool pull(Worker& me, const std::vector<double>& losses);
  void pull_proximally(Worker& me);  // x <- x + proximal (A - x)
  void visit(Archive&);

 private:
  comm::Communicator& comm_;
  const double c_, proximal_;
  const bool buffers_;
  Tensor z_, z_buffers_;
  Tensor next_;  // z on its way, where a broken broadcast must leave the last one
};

}  // namespace skein::optim
