// SPARTA: after every step a small part of the models is averaged, another one each time. Sparse Parameter
// Averaging: exo labs, 2025. Its published program sends which part that is, a byte a parameter; here all
// draw it from the same seed.
//
//   x_i  model of worker i      S  elements that are averaged after this step      p  --density, their share
#include <algorithm>
#include <cmath>

#include "engine/sample.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class Sparta final : public Strategy {
 public:
  explicit Sparta(const Options& o)
      : density_(o.number("density", 0.005, 0, 1)),
        seed_(uint64_t(o.integer("seed", 0))),
        mixes_(buffer_policy(o) == BufferPolicy::kMix) {}

  void start(Worker& me) override {
    values_ = sample_of(me, me.x);
    if (mixes_ && me.buffers.size() > 0) buffers_ = sample_of(me, me.buffers);
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    me.local_step(me.x);  // x_i <- x_i - eta u_i
    const Draw of_x{seed_, Purpose::kSample, uint64_t(k), 0},
        of_buffers{seed_, Purpose::kSample, uint64_t(k), 1};
    comm::Pendings means;
    take_sample(values_, me.x, of_x);
    means += mean_of(me, values_);
    if (buffers_) take_sample(buffers_, me.buffers, of_buffers), means += mean_of(me, buffers_);
    means.wait();
    put_sample(me.x, values_, of_x);  // x_i[S] <- mean x[S]
    if (buffers_) put_sample(me.buffers, buffers_, of_buffers);
    return loss;
  }

 private:
  Tensor sample_of(const Worker& me, const Tensor& x) const {
    const int64_t m = std::clamp<int64_t>(std::llround(density_ * double(x.size())), 1, x.size());
    return me.visible({m}, kF32);
  }

  const double density_;
  const uint64_t seed_;
  const bool mixes_;
  Tensor values_, buffers_;  // what travels
};

}  // namespace

std::unique_ptr<Strategy> make_sparta(const Options& o, int) { return std::make_unique<Sparta>(o); }

}  // namespace skein::optim
