// Windows, elections and pulls.
#include "optim/leaders/leaders.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "engine/vectors/vec.h"

namespace skein::optim {

LossWindow::LossWindow(int64_t length, Device device) : ring_(Tensor::zeros({length}, kF32, device)) {
  CHECK(length > 0, length);
}

void LossWindow::see(const Tensor& loss) { copy(ring_.view({1}, seen_++ % ring_.size()), loss.view({1})); }

// From the oldest on: the sum depends on what was seen, not on where in the ring it lies.
double LossWindow::mean() const {
  if (seen_ == 0) return std::numeric_limits<double>::infinity();
  const int64_t first = std::max<int64_t>(0, seen_ - ring_.size());
  Tensor losses = ring_;
  if (!losses.device().is_host()) {
    losses = losses.to(kCpu);
    current_stream(ring_.device()).sync();
  }
  double sum = 0;
  for (int64_t i = first; i < seen_; ++i) sum += losses.data<float>()[i % losses.size()];
  return sum / double(seen_ - first);
}

void LossWindow::visit(Archive& a) { a("losses", ring_), a("seen", seen_); }

int elect(const std::vector<double>& losses) {
  int leader = -1;
  for (int r = 0; r < int(losses.size()); ++r)
    if (std::isfinite(losses[size_t(r)]) && (leader < 0 || losses[size_t(r)] < losses[size_t(leader)]))
      leader = r;
  return leader;
}

std::vector<std::vector<int>> split_groups(int world, int64_t groups) {
  if (groups < 1 || groups > world)
    throw BadOption(
        text("--groups ", groups, ": with ", world, " workers 1 to ", world, " groups are possible"));
  std::vector<std::vector<int>> split(static_cast<size_t>(groups));
  int next = 0;
  for (size_t g = 0; g < split.size(); ++g) {
    const int left = int(split.size() - g), n = (world - next + left - 1) / left;
    split[g].resize(size_t(n));
    std::iota(split[g].begin(), split[g].end(), next);
    next += n;
  }
  return split;
}

std::vector<std::vector<int>> split_by_host(int world, comm::Communicator& comm) {
  std::vector<std::vector<int>> split;
  std::map<int, size_t> hosts;  // to the group of its first rank
  for (int r = 0; r < world; ++r) {
    const size_t g = hosts.try_emplace(comm.transport().host(comm.world_rank(r)), hosts.size()).first->second;
    split.resize(hosts.size());
    split[g].push_back(r);
  }
  return split;
}

Leader::Leader(comm::Communicator& comm, const Worker& me, double c, double proximal, bool buffers)
    : comm_(comm), c_(c), proximal_(proximal), buffers_(buffers && me.buffers.size() > 0), z_(me.x.clone()) {
  if (buffers_) z_buffers_ = me.buffers.clone();
  if (proximal_ > 0) next_ = z_.clone();
}

bool Leader::pull(Worker& me, const std::vector<double>& losses) {
  const int leader = elect(losses);
  if (leader < 0) return false;
  const bool mine = leader == comm_.rank();
  const Tensor& z = next_ ? next_ : z_;
  if (mine) copy(z, me.x);
  comm_.broadcast(z, leader);
  if (next_) std::swap(z_, next_);
  if (!mine) lerp(me.x, z_, c_);
  if (!buffers_) return true;
  if (mine) copy(z_buffers_, me.buffers);
  comm_.broadcast(z_buffers_, leader);
  if (!mine) lerp(me.buffers, z_buffers_, c_);
  return true;
}

void Leader::pull_proximally(Worker& me) {
  if (proximal_ > 0) lerp(me.x, z_, proximal_);
}

// Without proximal pulls A is forgotten as soon as a round is over.
void Leader::visit(Archive& a) {
  if (proximal_ > 0) a("anchor", z_);
}

}  // namespace skein::optim
