// Replaces the model by the one to be evaluated for a while.
#include "apps/evaluation/consensus_model.h"

#include <algorithm>
#include <cmath>

#include "apps/config/algorithm_values.h"
#include "comm/communicator/unrounded.h"
#include "engine/vectors/vec.h"
#include "optim/consensus.h"
#include "optim/gossip/gossip.h"

namespace skein::apps {
namespace {

constexpr int64_t kBatches = 16;   // of each worker, to recompute statistics
constexpr double kMomentum = 0.1;  // the weight of a batch's statistics in every batch norm

}  // namespace

ConsensusModel::ConsensusModel(const Config& c, const Setup& s, const nn::Flat& flat,
                               optim::Strategy& strategy, optim::Worker& me, const Ema* average)
    : x_{me.x}, buffers_{me.buffers} {
  const Tensor beside(me.x.shape(), kF32, me.x.device());
  const bool moves = !average && me.rule.evaluated_beside(beside);
  if (s.alone && !average && !moves) return;
  x_.lend();
  if (me.buffers.size() > 0) buffers_.lend();
  if (average)
    optim::consensus(me.comm, average->x(), me.x, strategy.share_of_model(me));
  else
    strategy.write_model(me, me.x);
  distance_ = optim::consensus_distance(me.comm, x_.own, me.x, flat.count);
  if (moves) {
    optim::weighed_mean(me.comm, beside, strategy.share_of_model(me)).wait();
    axpy(me.x, 1.f, beside);
  }
  if (!buffers_.own) return;
  const Tensor mine = average ? average->buffers() : buffers_.own;
  copy(me.buffers, mine);
  if (s.alone && !moves) return;
  const optim::BufferPolicy policy = optim::buffer_policy(options_of(c));
  if ((c.algorithm != "allreduce" || moves) && policy == optim::BufferPolicy::kRecompute) {
    recompute(c, s);
    optim::consensus(me.comm, me.buffers.clone(), me.buffers);
  } else if (c.algorithm != "allreduce" && policy == optim::BufferPolicy::kLocal) {
    const comm::Unrounded exactly(me.comm);  // worker 0 would have other bits than the others
    me.comm.broadcast(me.buffers, 0);
  } else {
    optim::consensus(me.comm, mine, me.buffers);
  }
}

// Statistics that start at zero become, after k batches, 1 - (1 - momentum)^k times a weighted
// mean over the batches.
void ConsensusModel::recompute(const Config& c, const Setup& s) {
  const NoTape off;
  const RandomScope random(uint64_t(c.seed), 0, uint32_t(s.place.rank));
  const std::vector<float> mean = s.data.train->mean(), deviation = s.data.train->std();
  const int64_t batches = std::min(kBatches, s.steps_per_epoch);
  data::Loader loader(*s.data.train, train_plan(c, s), s.image, 0, batches, s.device, s.data_threads, 4,
                      s.data_cores);
  fill(buffers_.place, 0.f);
  int64_t seen = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const data::Batch b = loader.next();
    const int64_t rows = b.size(), passes = std::min(c.accumulate, rows);  // as training has them
    for (int64_t p = 0; p < passes; ++p, ++seen) {
      const int64_t first = rows * p / passes, count = rows * (p + 1) / passes - first;
      const Shape shape{count, s.image.height, s.image.width, s.image.channels};
      const Tensor images = b.images.view(shape, first * shape.volume() / count);
      s.model->forward(normalize_image(images, mean, deviation, s.activations));
    }
  }
  if (seen == 0) return copy(buffers_.place, buffers_.own);
  scale(buffers_.place, 1 / (1 - std::pow(1 - kMomentum, double(seen))));
}

}  // namespace skein::apps
