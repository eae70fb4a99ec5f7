// Means of models: at once, and in the background.
#include "optim/periodic/periodic.h"

#include <mutex>

#include "engine/vectors/mixing.h"
#include "optim/gossip/gossip.h"

namespace skein::optim {
namespace {

// Memory where peers can see it, if they can see any.
Tensor visible_like(const Worker& me, const Tensor& x) {
  if (x.device().is_host()) return Tensor(x.shape(), x.dtype(), me.comm.allocator());
  return Tensor(x.shape(), x.dtype(), x.device());
}

bool mixes_buffers(const Options& o) { return buffer_policy(o) == BufferPolicy::kMix; }
bool has_buffers(const Worker& me) { return me.buffers && me.buffers.size() > 0; }

// Memory that peers may write at any time until they end.
void keep_for_ever(const Means& m) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<Means>;  // outlives all that is destroyed at exit
  const std::lock_guard lock(mutex);
  kept.push_back(m);
}

comm::Pending mean_of(Worker& me, const Tensor& x) {
  if (me.weight == 0) return me.comm.mean(x);
  scale(x, me.weight);
  return me.comm.all_reduce(x);
}

void begin_means(Worker& me, const Means& m, comm::Pendings& means) {
  means += mean_of(me, m.x);
  if (m.buffers) means += mean_of(me, m.buffers);
}

constexpr int64_t kArrived = 2;  // of Flight::under_way_

}  // namespace

// ---- at once --------------------------------------------------------------------------------------------
Round::Round(const Options& o, int64_t tau) : period_(o, tau), mixes_(mixes_buffers(o)) {}

Tensor Round::step_of(Worker& me, bool is_last) {
  if (!is_last) return me.local_step(me.x), Tensor();
  const Means mean = last_step(me, 0, me.x.size(), true);
  mean.give_buffers(me);
  return mean.x;
}

Means Round::means(Worker& me, int64_t k) {
  if (period_.ends(k)) return last_step(me, 0, me.x.size(), true);
  return me.local_step(me.x), Means();
}

Means Round::last_step(Worker& me, int64_t begin, int64_t end, bool with_buffers) {
  if (!mean_.x) mean_.x = visible_like(me, me.x);
  if (mixes_ && has_buffers(me) && !mean_.buffers) mean_.buffers = visible_like(me, me.buffers);
  const Means mean{mean_.x.view({end - begin}, begin), with_buffers ? mean_.buffers : Tensor()};

  me.local_step(me.x);
  copy(mean.x, me.x.view({end - begin}, begin));
  if (mean.buffers) copy(mean.buffers, me.buffers);
  comm::Pendings means;
  begin_means(me, mean, means);
  means.wait();
  return mean;
}

// ---- in the background ----------------------------------------------------------------------------------
Flight::Flight(const Options& o, bool with_buffers) : mixes_(with_buffers && mixes_buffers(o)) {}
Flight::~Flight() { leave(); }

void Flight::start(Worker& me, const Tensor& like) {
  own_.x = like.clone();
  if (mixes_ && has_buffers(me)) own_.buffers = me.buffers.clone();
}

void Flight::carry_on(Worker& me) {
  landed_ = false;
  if (under_way_ != 1 || begun_) return;
  if (!mean_.x) mean_.x = visible_like(me, own_.x);
  if (own_.buffers && !mean_.buffers) mean_.buffers = visible_like(me, own_.buffers);
  copy(mean_.x, own_.x);
  if (own_.buffers) copy(mean_.buffers, own_.buffers);
  begun_ = 1;
  others_write_ = me.comm.size() > 1;
  begin_means(me, mean_, means_);
}

Means Flight::land() {
  if (under_way_ == kArrived) return under_way_ = 0, arrived_;
  if (!under_way_) return {};
  CHECK(begun_, "carry_on() comes first");
  finish();
  under_way_ = begun_ = 0;
  landed_ = true;
  return mean_;
}

void Flight::finish() {
  means_.wait();
  others_write_ = false;
}

void Flight::set_out(Worker& me, const Tensor& x) {
  CHECK(!under_way_, "one at a time");
  copy(own_.x, x);
  if (own_.buffers) copy(own_.buffers, me.buffers);
  under_way_ = 1;
}

void Flight::visit(Archive& a) {
  a("given", own_.x);
  if (own_.buffers) a("given_buffers", own_.buffers);
  a("under_way", under_way_);
  if (a.loading()) leave();
  if (under_way_ == kArrived) visit_mean(a, arrived_);
}

void Flight::visit_arrived(Archive& a) {
  int64_t known = kArrived;
  if (!landed_) return;
  a("under_way", known);
  visit_mean(a, mean_);
}

// Loads into memory of its own.
void Flight::visit_mean(Archive& a, Means& m) {
  if (!m.x) m.x = own_.x.clone();
  if (own_.buffers && !m.buffers) m.buffers = own_.buffers.clone();
  a("mean", m.x);
  if (m.buffers) a("mean_buffers", m.buffers);
}

void Flight::leave() {
  if (others_write_) {
    keep_for_ever(mean_);
    mean_ = {};
  }
  means_ = {};
  others_write_ = false;
  begun_ = 0;
}

// m is computed from the difference z - mean x, which is small and exact; z / eta would be neither.
void slow_momentum(const Tensor& z, const Tensor& m, const Tensor& mean, double beta, double rate, double eta,
                   const Tensor& x) {
  if (eta != 0)
    return outer_step(
        {.z = z, .m = m, .mean = mean, .x = x, .decay = beta, .gain = -1 / eta, .along = -rate * eta});
  copy(z, mean);
  if (x) copy(x, mean);
}

}  // namespace skein::optim
