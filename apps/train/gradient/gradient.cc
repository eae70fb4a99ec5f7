// One batch in one pass or several: normalized or blended, through the model and back, then
// unscaled and clipped.
#include "apps/train/gradient/gradient.h"

#include <algorithm>
#include <utility>

#include "apps/setup/memory_advice.h"
#include "engine/device/memory.h"
#include "engine/vectors/narrow.h"

namespace skein::apps {

namespace {
StepGraphs graphs_of(Run& run) {
  const data::ImageSize& image = run.setup.image;
  return {records_steps(run.config.cuda_graphs, run.setup.device), run.setup.device, run.rows(),
          Shape{image.height, image.width, image.channels},
          [&run](const std::string& why) { run.progress.say(why); }};
}

// Messages that are under way move on between layers. A recorded step sees to it where slices are handed out.
std::function<void()> progress_of(Run& run, const Pacing& pacing) {
  return [&run, &pacing] {
    pacing.layer();
    if (!records(run.setup.device)) between_recorded([&] { run.comm().progress(); });
  };
}
}  // namespace

Gradient::Gradient(Run& run, Batches& batches, Traces& traces, const nn::Flat& flat)
    : run_(run),
      batches_(batches),
      traces_(traces),
      flat_(flat),
      scale_(make_loss_scale(run.config.loss_scale, run.setup.activations, run.setup.device)),
      graphs_(graphs_of(run)),
      oracle_(*run.setup.model, flat,
              {.slice_bytes = nn::slice_bytes_for(flat.g.bytes(), run.config.slice_mb),
               .most_passes = run.config.accumulate,
               .clip_norm = run.config.clip_norm,
               .scale = scale_.get(),
               .between = progress_of(run, pacing_)}),
      meters_(run.setup.device),
      loss_({1}, kF32, run.setup.device) {}

void Gradient::end_step() {
  if (!std::exchange(taken_, false)) batches_.next();
}

// One worker's infinity is in the sum that all workers judge, so they all skip the step.
Tensor Gradient::of_next_batch(const optim::Slices& slices) {
  const Tensor loss =
      within_memory(run_.setup, run_.rows(), run_.config.accumulate, [&] { return next(slices.ready); });
  if (slices) slices.complete(), oracle_.judge();
  return loss;
}

Tensor Gradient::next(const GradReady& ready) {
  const Config& c = run_.config;
  Seconds& seconds = run_.costs.seconds;
  const Speed::Lap lap(speed_, run_.k);
  data::Batch batch;
  {
    const Timed t = traces_.timed(seconds.data, "data");
    batch = batches_.next(), taken_ = true;
  }
  // A shard may be used up, and an epoch's last batch may have fewer images than there are workers.
  if (batch.size() == 0) {
    oracle_.no_gradient(ready);
    return Tensor::zeros({1}, kF32, run_.setup.device);
  }
  const Blend blend = draw_blend({c.mixup, c.cutmix}, uint64_t(c.seed), run_.k, run_.setup.place.rank,
                                 batch.size(), run_.setup.image.height, run_.setup.image.width);
  ready_ = ready;
  const TrustNarrow weights(flat_.x);  // nothing writes x until the gradient is there
  const double from = clock_seconds(), forward = seconds.forward;
  const StepGraphs::Given given = graphs_.take(batch, blend, run_.k);
  const Recorded::Way way = graphs_.gradient(given, bool(ready), [&] { compute(given, bool(ready)); });
  // A recorded step has no forward part of its own: all of it counts as backward.
  const double now = clock_seconds();
  seconds.backward += now - from - (seconds.forward - forward);
  if (way == Recorded::Way::kReplayed) traces_.add("forward and backward", from, now);
  lap.end(batch.size());
  return loss_.clone();  // the next step writes loss_ again
}

// This function is recorded and replayed, so the numbers of a step may enter it only through `in`. The
// gradient that only gives SAM's direction uphill is neither unscaled nor clipped.
void Gradient::compute(const StepGraphs::Given& in, bool handed_out) {
  const GradReady slices = [this](const Tensor& g) {
    between_recorded([this, g] {
      ready_(g);
      run_.comm().progress();
    });
  };
  const GradReady handed = handed_out ? slices : GradReady(), kept = [](const Tensor&) {};
  Tensor hits;
  const Tensor loss = differentiate(in, uphill_ ? kept : handed, &hits);
  if (uphill_) uphill_->take([&] { differentiate(in, handed, nullptr); });
  meters_.add(loss, float(in.batch.size()), hits);
  copy(loss_, loss);
}

Tensor Gradient::differentiate(const StepGraphs::Given& in, const GradReady& slices, Tensor* hits) {
  const RandomScope random(uint64_t(run_.config.seed), uint64_t(run_.k), uint32_t(run_.setup.place.rank),
                           in.step_slot);
  const int64_t rows = in.batch.size(), passes = std::min(run_.config.accumulate, rows);
  double back = 0;  // when the latest pass began to go backward
  const auto forward_pass = [&](int64_t p) {
    if (p > 0) traces_.add("backward", back, clock_seconds());
    const Pass one = forward(in, rows * p / passes, rows * (p + 1) / passes);
    if (hits) p == 0 ? void(*hits = one.hits) : axpy(*hits, 1.f, one.hits);
    back = clock_seconds();
    return one.loss;
  };
  const Tensor loss = oracle_.gradient(passes, forward_pass, slices);
  traces_.add("backward", back, clock_seconds());
  return loss;
}

// Rows [first, last) of a batch; the losses of its passes are shares of its mean and add up to it. An
// image that cannot be read counts with a loss of zero, so that all others weigh the same, in any pass and
// with any worker.
Gradient::Pass Gradient::forward(const StepGraphs::Given& in, int64_t first, int64_t last) {
  const Setup& s = run_.setup;
  const Timed t = traces_.timed(run_.costs.seconds.forward, "forward");
  const MemoryFor what("the forward pass");
  const int64_t rows = last - first;
  const Tensor labels = in.batch.labels.view({rows}, first);
  Targets targets{labels, {}, in.blend.share, in.batch.size(), in.share_slot()};
  Tensor images;
  if (in.blend.shift > 0) {
    images = blend_image(in.batch.images, in.batch.labels, in.blend, first, rows, s.mean, s.deviation,
                         s.activations, in.blend_slot);
    targets.other = partner_labels(in.batch.labels, in.blend, in.blend_slot).view({rows}, first);
  } else {
    const Shape shape{rows, s.image.height, s.image.width, s.image.channels};
    images = normalize_image(in.batch.images.view(shape, first * shape.volume() / rows), s.mean, s.deviation,
                             s.activations);
  }
  const Tensor logits = s.model->forward(images);
  pacing_.forward(first, last);
  const Tensor loss = cross_entropy(logits, targets, float(run_.config.label_smoothing));
  const NoTape off;
  return {loss, top_k_hits(logits, labels, 1)};  // a blended image is counted by its own label
}

}  // namespace skein::apps
