// The oracle that strategies ask: the gradient of one batch, made in one pass or in several, blended and
// clipped.
#include <algorithm>

#include "apps/clock.h"
#include "apps/trainer.h"
#include "comm/communicator.h"
#include "engine/clip.h"
#include "engine/memory.h"
#include "engine/narrow.h"
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
  const Blend blend = draw_blend({config_.mixup, config_.cutmix}, uint64_t(config_.seed), k_,
                                 setup_.place.rank, batch.size(), setup_.image.height, setup_.image.width);
  if (!loss_) loss_ = Tensor({1}, kF32, setup_.device);
  if (!earlier_ && std::min(config_.accumulate, batch.size()) > 1) earlier_ = flat_.g.clone();
  ready_ = ready ? &ready : nullptr;
  const TrustNarrow weights(flat_.x);  // nobody writes x until the gradient is there
  const double from = clock_seconds(), inside = seconds_.forward + seconds_.backward;
  const StepGraphs::Given given = graphs_->take(batch, blend, k_);
  const Recorded::Way way =
      graphs_->gradient(given, bool(ready), [&] { compute_gradient(given, bool(ready)); });
  // A recorded step has no forward part of its own: all of it counts as backward.
  const double now = clock_seconds();
  seconds_.backward += now - from - (seconds_.forward + seconds_.backward - inside);
  if (way == Recorded::Way::kReplayed)
    trace_->add({comm::Track::kCompute, "forward and backward", from, now});
  return loss_.clone();  // who keeps it keeps this step's
}

// What is recorded: one batch, in one pass or several. Nothing here may depend on a step's own numbers but by way
// of `in`.
void Trainer::compute_gradient(const StepGraphs::Given& in, bool handed_out) {
  const RandomScope random(uint64_t(config_.seed), uint64_t(k_), uint32_t(setup_.place.rank), in.step_slot);
  const int64_t rows = in.batch.size(), passes = std::min(config_.accumulate, rows);
  Pass sum;
  for (int64_t p = 0; p < passes; ++p) {
    Tape tape;
    const Pass one = forward(in, rows * p / passes, rows * (p + 1) / passes);
    if (p == 0)
      sum = {one.loss, one.hits};
    else
      axpy(sum.loss, 1.f, one.loss), axpy(sum.hits, 1.f, one.hits);
    if (p + 1 < passes) {
      backward(tape, one.loss, {});
      p == 0 ? copy(earlier_, flat_.g) : axpy(earlier_, 1.f, flat_.g);
      continue;
    }
    const auto with_earlier = [&](const Tensor& g) {
      if (passes > 1) axpy(g, 1.f, earlier_.view(g.shape(), g.data<float>() - flat_.g.data<float>()));
    };
    const optim::GradReady slices = [&](const Tensor& g) {
      with_earlier(g);
      between_recorded([this, g] {
        (*ready_)(g);
        comm().progress();
      });
    };
    backward(tape, one.loss, handed_out ? slices : optim::GradReady());
    if (!handed_out) with_earlier(flat_.g);
  }
  // Handed out in slices, it is whoever sums them that judges and clips.
  if (!handed_out && scale_) scale_->judge(flat_.g);
  if (!handed_out && config_.clip_norm > 0) clip_by_norm(flat_.g, config_.clip_norm);
  meters_.add(sum.loss, float(rows), sum.hits);
  copy(loss_, sum.loss);
}

// Rows [first, last) of a batch; the losses of its passes are shares of its mean and add up to it. An image that
// cannot be read counts with a loss of zero, so that each of the others weighs the same, in whichever pass and with
// whichever worker it is.
Trainer::Pass Trainer::forward(const StepGraphs::Given& in, int64_t first, int64_t last) {
  const Timed t(seconds_.forward, trace_.get(), "forward");
  const MemoryFor what("the forward pass");
  for (nn::Param* p : params_) Tape::current()->watch(p->value, p->grad);
  const int64_t rows = last - first;
  const Tensor labels = in.batch.labels.view({rows}, first);
  Targets targets{labels, {}, in.blend.share, in.batch.size(), in.share_slot()};
  Tensor images;
  if (in.blend.shift > 0) {
    images = blend_image(in.batch.images, in.batch.labels, in.blend, first, rows, mean_, deviation_,
                         setup_.activations, in.blend_slot);
    targets.other = partner_labels(in.batch.labels, in.blend, in.blend_slot).view({rows}, first);
  } else {
    const data::ImageSize& size = setup_.image;
    const Shape shape{rows, size.height, size.width, size.channels};
    images = normalize_image(in.batch.images.view(shape, first * shape.volume() / rows), mean_, deviation_,
                             setup_.activations);
  }
  const Tensor logits = setup_.model->forward(images);
  const Tensor loss = cross_entropy(logits, targets, float(config_.label_smoothing));
  const NoTape off;
  return {loss, top_k_hits(logits, labels, 1)};  // of blended images, too, against their own label
}

void Trainer::backward(Tape& tape, const Tensor& loss, const optim::GradReady& ready) {
  const Timed t(seconds_.backward, trace_.get(), "backward");
  const GradReady slices = ready ? slicer_->start(ready) : GradReady();
  tape.backward(
      loss,
      [&](const Tensor& grad) {
        if (slices) slices(grad);
        // What is under way moves on meanwhile; a recorded step sees to it where slices are handed out.
        if (!records(setup_.device)) between_recorded([&] { comm().progress(); });
      },
      scale_ ? scale_->seed() : 1.f);
  if (ready) slicer_->finish();
}

}  // namespace skein::apps
