// Each pass runs forward on a tape and backward through the slicer; the gradients of the passes are added.
#include "nn/oracle.h"

#include "engine/vectors/clip.h"
#include "engine/vectors/loss_scale.h"

namespace skein::nn {

Oracle::Oracle(Module& model, const Flat& flat, OracleOptions o)
    : o_(std::move(o)),
      params_(model.params()),
      g_(flat.g),
      slicer_(flat, o_.slice_bytes),
      earlier_(o_.most_passes > 1 ? Tensor::zeros(g_.shape(), kF32, g_.device()) : Tensor()) {}

Tensor Oracle::gradient(int64_t passes, const std::function<Tensor(int64_t)>& forward,
                        const GradReady& ready) {
  CHECK(passes >= 1 && passes <= o_.most_passes, passes, o_.most_passes);
  const GradReady of_all_passes = [&](const Tensor& slice) {
    if (passes > 1) add_earlier(slice);
    ready(slice);
  };
  Tensor sum;
  for (int64_t p = 0; p < passes; ++p) {
    const bool last = p + 1 == passes;
    const Tensor loss =
        differentiate([&] { return forward(p); }, last && ready ? of_all_passes : GradReady());
    p == 0 ? void(sum = loss) : axpy(sum, 1.f, loss);
    if (!last) p == 0 ? copy(earlier_, g_) : axpy(earlier_, 1.f, g_);
  }
  if (ready) return sum;
  if (passes > 1) add_earlier(g_);
  judge();
  return sum;
}

void Oracle::judge() {
  if (o_.scale) o_.scale->judge(g_);
  if (o_.clip_norm > 0) clip_by_norm(g_, o_.clip_norm);
}

Tensor Oracle::differentiate(const std::function<Tensor()>& forward, const GradReady& ready) {
  Tape tape;
  for (Param* p : params_) tape.watch(p->value, p->grad);
  const Tensor loss = forward();
  const GradReady slices = ready ? slicer_.start(ready) : GradReady();
  const auto after_layer = [&](const Tensor& grad) {
    if (o_.between) o_.between();
    if (slices) slices(grad);
  };
  tape.backward(loss, after_layer, o_.scale ? o_.scale->seed() : 1.f);
  if (ready) slicer_.finish();
  return loss;
}

void Oracle::add_earlier(const Tensor& slice) const {
  axpy(slice, 1.f, earlier_.view(slice.shape(), slice.data<float>() - g_.data<float>()));
}

void Oracle::no_gradient(const GradReady& ready) {
  fill(g_, 0.f);
  if (ready) slicer_.start(ready), slicer_.finish();
}

}  // namespace skein::nn
