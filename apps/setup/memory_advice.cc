// Tries smaller batches of blank images if the real one did not fit.
#include "apps/setup/memory_advice.h"

#include <algorithm>
#include <optional>

#include "engine/device/device_trouble.h"
#include "engine/device/memory.h"
#include "engine/random.h"

namespace skein::apps {
namespace {

// The peak memory use of a pass over `n` images; nothing if it did not fit.
std::optional<int64_t> peak_of(const Setup& s, int64_t n) {
  release_cached(s.device);
  reset_peak(s.device);
  try {
    try_step(s, n);
    return memory_use(s.device).peak;
  } catch (const OutOfMemory&) { return {}; }
}

std::string advice(const Setup& s, int64_t batch, int64_t passes, int64_t room) try {
  int64_t parameters = 0;
  for (const nn::Param* p : s.model->params()) parameters += p->value.size();
  const Tensor earlier_passes({parameters}, kF32, s.device);  // memory that --accumulate needs
  const int64_t at_rest = memory_use(s.device).now, failed = (batch + passes - 1) / passes;
  for (int64_t n = failed / 2; n >= 1; n /= 2) {
    const std::optional<int64_t> peak = peak_of(s, n);
    if (!peak) continue;
    int64_t fits = n;
    if (room > 0) fits = batch_that_fits(n, failed, at_rest, *peak, room);
    if (fits > n && !peak_of(s, fits)) fits = n;
    return text("a pass of ", fits, " images fits: --accumulate ", (batch + fits - 1) / fits,
                " makes the same step, or --batch-size ", fits * passes, " makes a smaller one (tried; ", n,
                " images take ", bytes_in_words(*peak - at_rest), " in addition to ", bytes_in_words(at_rest),
                " at rest)");
  }
  return "not even one image fits: a smaller --image-size or --model, or another device";
} catch (const OutOfMemory&) { return "not even one image fits: a smaller --model, or another device"; }

}  // namespace

void try_step(const Setup& s, int64_t n) {
  const Tensor images = Tensor::zeros({n, s.image.height, s.image.width, s.image.channels}, kU8, s.device),
               labels = Tensor::zeros({n}, kI32, s.device);
  const RandomScope random(0, 0, 0);
  Tape tape;
  for (nn::Param* p : s.model->params()) tape.watch(p->value, p->grad);
  const data::DataSource& train = *s.data.train;
  const Tensor x = normalize_image(images, train.mean(), train.std(), s.activations);
  tape.backward(cross_entropy(s.model->forward(x), labels));
  current_stream(s.device).sync();
}

int64_t batch_that_fits(int64_t tried, int64_t failed, int64_t at_rest, int64_t peak, int64_t room) {
  const double each = double(std::max<int64_t>(1, peak - at_rest)) / double(tried);
  int64_t n = int64_t(double(room - at_rest) * 15 / 16 / each);
  if (n >= 16) n -= n % 8;
  return std::clamp(n, tried, std::max(tried, failed - 1));
}

Tensor within_memory(const Setup& s, int64_t batch, int64_t passes, const std::function<Tensor()>& compute) {
  std::optional<OutOfMemory> lacking;
  try {
    return compute();
  } catch (const OutOfMemory& e) { lacking = e; }
  // All memory of the step is free again here.
  throw Error(text(lacking->what(), "; ", advice(s, batch, passes, lacking->room)));
}

}  // namespace skein::apps
