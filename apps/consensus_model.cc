// The mean of the models put in their place for a while.
#include "apps/consensus_model.h"

#include <algorithm>
#include <cmath>

#include "engine/vec.h"
#include "optim/consensus.h"
#include "optim/gossip.h"

namespace skein::apps {
namespace {

constexpr int64_t kBatches = 16;   // of each worker, for new statistics
constexpr double kMomentum = 0.1;  // of every batch norm: what a batch's statistics weigh

}  // namespace

ConsensusModel::ConsensusModel(const Config& c, const Setup& s, const nn::Flat& flat,
                               optim::Strategy& strategy, optim::Worker& me, const Ema* average)
    : x_(me.x), buffers_(me.buffers) {
  if (!me.comm && !average) return;
  own_x_ = x_.clone();
  if (buffers_.size() > 0) own_buffers_ = buffers_.clone();
  if (average)
    optim::consensus(me.comm, average->x(), x_);
  else
    strategy.evaluated(me, x_);
  distance_ = optim::consensus_distance(me.comm, own_x_, x_, flat.count);
  if (!own_buffers_) return;
  const Tensor mine = average ? average->buffers() : own_buffers_;
  copy(buffers_, mine);
  if (!me.comm) return;
  const optim::BufferPolicy policy = optim::buffer_policy(options_of(c));
  if (c.algorithm != "allreduce" && policy == optim::BufferPolicy::kRecompute) {
    recompute(c, s);
    optim::consensus(me.comm, buffers_.clone(), buffers_);
  } else if (c.algorithm != "allreduce" && policy == optim::BufferPolicy::kLocal) {
    me.comm->broadcast(buffers_, 0);
  } else {
    optim::consensus(me.comm, mine, buffers_);
  }
}

ConsensusModel::~ConsensusModel() {
  if (own_x_) copy(x_, own_x_);
  if (own_buffers_) copy(buffers_, own_buffers_);
}

// Statistics that start at zero are, after k batches, 1 - (1 - momentum)^k of a weighted mean over the
// batches.
void ConsensusModel::recompute(const Config& c, const Setup& s) {
  const NoTape off;
  const RandomScope random(uint64_t(c.seed), 0, uint32_t(s.place.rank));
  const std::vector<float> mean = s.data.train->mean(), deviation = s.data.train->std();
  const int64_t batches = std::min(kBatches, s.steps_per_epoch);
  data::Loader loader(*s.data.train, train_plan(c, s), s.image, 0, batches, s.device, s.data_threads, 4,
                      s.data_cores);
  fill(buffers_, 0.f);
  int64_t seen = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const data::Batch b = loader.next();
    if (b.size() == 0) continue;
    s.model->forward(normalize_image(b.images, mean, deviation, s.activations));
    ++seen;
  }
  if (seen == 0) return copy(buffers_, own_buffers_);
  scale(buffers_, 1 / (1 - std::pow(1 - kMomentum, double(seen))));
}

}  // namespace skein::apps
