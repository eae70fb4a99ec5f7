// The oracle that strategies ask: the gradient of one batch, made in one pass or in several, blended and
// clipped.
#include <algorithm>

#include "apps/clock.h"
#include "apps/trainer.h"
#include "engine/clip.h"
#include "engine/memory.h"
#include "engine/vec.h"

namespace skein::apps {

Tensor Trainer::gradient(const optim::GradReady& ready) {
  data::Batch batch;
  {
    const Timed t(seconds_.data, trace_.get(), "data");
    batch = loader_->next();
  }
  if (batch.size() ==
      0) {  // a shard that is used up, or more workers than images in the last batch of an epoch
    fill(flat_.g, 0.f);
    if (ready) slicer_->start(ready), slicer_->finish();  // the same slices as the others
    return Tensor::zeros({1}, kF32, setup_.device);
  }
  const uint64_t seed = uint64_t(config_.seed);
  const RandomScope random(seed, uint64_t(k_), uint32_t(setup_.place.rank));
  const Blend blend = draw_blend({config_.mixup, config_.cutmix}, seed, k_, setup_.place.rank, batch.size(),
                                 setup_.image.height, setup_.image.width);
  const int64_t passes = std::min(config_.accumulate, batch.size());
  Pass sum;
  for (int64_t p = 0; p < passes; ++p) {
    Tape tape;
    const Pass one =
        forward(batch, blend, batch.size() * p / passes, batch.size() * (p + 1) / passes, passes == 1);
    if (p == 0)
      sum = {one.loss, one.hits};
    else
      axpy(sum.loss, 1.f, one.loss), axpy(sum.hits, 1.f, one.hits);
    if (p + 1 < passes) {
      backward(tape, one.loss, {});
      if (!earlier_) earlier_ = flat_.g.clone();
      p == 0 ? copy(earlier_, flat_.g) : axpy(earlier_, 1.f, flat_.g);
      continue;
    }
    const auto with_earlier = [&](const Tensor& g) {
      if (passes > 1) axpy(g, 1.f, earlier_.view(g.shape(), g.data<float>() - flat_.g.data<float>()));
    };
    const optim::GradReady slices = [&](const Tensor& g) { with_earlier(g), ready(g); };
    backward(tape, one.loss, ready ? slices : optim::GradReady());
    if (!ready) with_earlier(flat_.g);
  }
  // Handed out in slices, it is whoever sums them that judges and clips.
  if (!ready && scale_) scale_->judge(flat_.g);
  if (!ready && config_.clip_norm > 0) clip_by_norm(flat_.g, config_.clip_norm);
  meters_.add(sum.loss, sum.hits);
  return sum.loss;
}

// Rows [first, last). Unless they are the whole batch, losses are shares of its mean, which add up to it.
Trainer::Pass Trainer::forward(const data::Batch& batch, const Blend& blend, int64_t first, int64_t last,
                               bool whole) {
  const Timed t(seconds_.forward, trace_.get(), "forward");
  const MemoryFor what("the forward pass");
  for (nn::Param* p : params_) Tape::current()->watch(p->value, p->grad);
  const int64_t rows = last - first;
  const Tensor labels = batch.labels.view({rows}, first);
  Targets targets{labels, {}, blend.share, 0};
  if (!whole) targets.rows = std::max<int64_t>(1, batch.size() - batch.unreadable);
  Tensor images;
  if (blend.shift > 0) {
    images =
        blend_image(batch.images, batch.labels, blend, first, rows, mean_, deviation_, setup_.activations);
    targets.other = partner_labels(batch.labels, blend).view({rows}, first);
  } else {
    const data::ImageSize& size = setup_.image;
    const Shape shape{rows, size.height, size.width, size.channels};
    images = normalize_image(batch.images.view(shape, first * shape.volume() / rows), mean_, deviation_,
                             setup_.activations);
  }
  const Tensor logits = setup_.model->forward(images);
  const Tensor loss = cross_entropy(logits, targets, float(config_.label_smoothing));
  const NoTape off;
  return {loss, top_k_hits(logits, labels, 1)};  // of blended images, too, against their own label
}

void Trainer::backward(Tape& tape, const Tensor& loss, const optim::GradReady& ready) {
  const Timed t(seconds_.backward, trace_.get(), "backward");
  comm::Communicator* const comm = setup_.place.comm;
  const GradReady slices = ready ? slicer_->start(ready) : GradReady();
  tape.backward(
      loss,
      [&](const Tensor& grad) {
        if (slices) slices(grad);
        if (comm) comm->progress();  // what is under way moves on meanwhile
      },
      scale_ ? scale_->seed() : 1.f);
  if (ready) slicer_->finish();
}

}  // namespace skein::apps
