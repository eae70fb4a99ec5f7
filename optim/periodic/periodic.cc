// Means of models: at once, and in the background.
#include "optim/periodic/periodic.h"

#include "comm/communicator/coding.h"
#include "engine/vectors/mixing.h"
#include "optim/consensus.h"
#include "optim/gossip/gossip.h"

namespace skein::optim {
namespace {

bool mixes_buffers(const Options& o) { return buffer_policy(o) == BufferPolicy::kMix; }
bool has_buffers(const Worker& me) { return me.buffers && me.buffers.size() > 0; }

}  // namespace

comm::Pending mean_of(Worker& me, const Tensor& x) { return weighed_mean(me.comm, x, me.weight); }

// ---- one mean ---------------------------------------------------------------------------------------------
Average::Average(const Options& o) : codec_(codec_of(o)) {}

void Average::start(Worker& me, const Tensor& like, const Tensor& anchor) {
  if (me.comm.size() == 1) codec_ = {};
  if (!codec_) return;
  own_common_ = !anchor;
  common_ = anchor ? anchor : like.clone();
  residual_ = Tensor::zeros(like.shape(), kF32, like.device());
  working_ = residual_.clone();
}

comm::Pending Average::begin(Worker& me, const Tensor& mean, int64_t begin) {
  if (!codec_) return mean_of(me, mean);
  const Tensor left = window(working_, mean, begin);
  axpy(mean, -1.f, window(common_, mean, begin));
  if (me.weight != 0) scale(mean, me.weight * me.comm.size());
  copy(left, window(residual_, mean, begin));
  return me.comm.mean(mean, {codec_, left});
}

void Average::end(const Tensor& mean, int64_t begin) {
  if (!codec_) return;
  const Tensor common = window(common_, mean, begin);
  axpy(mean, 1.f, common);
  copy(window(residual_, mean, begin), window(working_, mean, begin));
  if (own_common_) copy(common, mean);
}

void Average::skip(const Tensor& mean) {
  if (own_common_) copy(common_, mean);
}

void Average::leave() {
  if (codec_) working_ = residual_.clone();
}

void Average::visit(Archive& a) {
  if (!codec_) return;
  a("residual", residual_);
  if (own_common_) a("common", common_);
}

// By then the common vector is the mean.
void Average::visit_arrived(Archive& a) {
  if (codec_) a("residual", residual_);
}

// ---- at once --------------------------------------------------------------------------------------------
Round::Round(const Options& o, int64_t tau) : period_(o, tau), mixes_(mixes_buffers(o)), average_(o) {}

Tensor Round::step_of(Worker& me, bool is_last) {
  if (!is_last) return me.local_step(me.x), Tensor();
  const Means mean = last_step(me, 0, me.x.size(), true);
  mean.give_buffers(me);
  return mean.x;
}

Tensor Round::meet(Worker& me, int64_t k) {
  if (!period_.ends(k)) return {};
  const Means mean = exchange(me, 0, me.x.size(), true);
  mean.give_buffers(me);
  return mean.x;
}

Means Round::means(Worker& me, int64_t k) {
  if (period_.ends(k)) return last_step(me, 0, me.x.size(), true);
  return me.local_step(me.x), Means();
}

Means Round::last_step(Worker& me, int64_t begin, int64_t end, bool with_buffers) {
  me.local_step(me.x);
  return exchange(me, begin, end, with_buffers);
}

Means Round::exchange(Worker& me, int64_t begin, int64_t end, bool with_buffers) {
  if (!mean_.x) mean_.x = me.visible(me.x.shape(), kF32);
  if (mixes_ && has_buffers(me) && !mean_.buffers) mean_.buffers = me.visible(me.buffers.shape(), kF32);
  const Means mean{mean_.x.view({end - begin}, begin), with_buffers ? mean_.buffers : Tensor()};

  copy(mean.x, me.x.view({end - begin}, begin));
  if (mean.buffers) copy(mean.buffers, me.buffers);
  comm::Pendings means;
  means += average_.begin(me, mean.x, begin);
  if (mean.buffers) means += mean_of(me, mean.buffers);
  means.wait();
  average_.end(mean.x, begin);
  return mean;
}

// ---- in the background ----------------------------------------------------------------------------------
Flight::Flight(const Options& o, bool with_buffers) : mixes_(with_buffers && mixes_buffers(o)), average_(o) {}
Flight::~Flight() { leave(); }

void Flight::start(Worker& me, const Tensor& like, const Tensor& anchor) {
  own_.x = like.clone();
  average_.start(me, like, anchor);
  if (mixes_ && has_buffers(me)) own_.buffers = me.buffers.clone();
}

void Flight::carry_on(Worker& me) {
  landed_ = false;
  if (under_way_ != kUnderWay || begun_) return;
  if (!mean_.x) mean_.x = me.visible(own_.x.shape(), kF32);
  if (own_.buffers && !mean_.buffers) mean_.buffers = me.visible(own_.buffers.shape(), kF32);
  copy(mean_.x, own_.x);
  if (own_.buffers) copy(mean_.buffers, own_.buffers);
  begun_ = true;
  others_write_ = me.comm.size() > 1;
  means_ += average_.begin(me, mean_.x);
  if (mean_.buffers) means_ += mean_of(me, mean_.buffers);
}

Means Flight::land() {
  if (under_way_ == kArrived) {
    average_.skip(arrived_.x);
    under_way_ = kAtHome;
    return arrived_;
  }
  if (under_way_ == kAtHome) return {};
  CHECK(begun_, "carry_on() comes first");
  finish();
  average_.end(mean_.x);
  under_way_ = kAtHome, begun_ = false;
  landed_ = true;
  return mean_;
}

void Flight::finish() {
  means_.wait();
  others_write_ = false;
}

void Flight::set_out(Worker& me, const Tensor& x) {
  CHECK(under_way_ == kAtHome, "one at a time");
  copy(own_.x, x);
  if (own_.buffers) copy(own_.buffers, me.buffers);
  under_way_ = kUnderWay;
}

void Flight::visit(Archive& a) {
  a("given", own_.x);
  if (own_.buffers) a("given_buffers", own_.buffers);
  average_.visit(a);
  a("under_way", under_way_);
  if (a.loading()) leave();
  if (under_way_ == kArrived) visit_mean(a, arrived_);
}

void Flight::visit_arrived(Archive& a) {
  int64_t known = kArrived;
  if (!landed_) return;
  a("under_way", known);
  visit_mean(a, mean_);
  average_.visit_arrived(a);
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
    mean_ = {};
    average_.leave();
  }
  means_ = {};
  others_write_ = false;
  begun_ = false;
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
