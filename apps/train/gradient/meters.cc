// Sums loss and hits in one small vector on the device.
#include "apps/train/gradient/meters.h"

#include <cmath>

#include "engine/vectors/vec.h"

namespace skein::apps {

Sums& Sums::operator+=(const Sums& o) {
  loss += o.loss, hits += o.hits, images += o.images;
  return *this;
}

void Sums::visit(Archive& a) {
  a("loss", loss);
  a("hits", hits);
  a("images", images);
}

Meters::Meters(Device d) : sums_(Tensor::zeros({3}, kF32, d)), arriving_({3}, kF32, pinned_allocator()) {}

void Meters::add(const Tensor& loss, float rows, const Tensor& hits) {
  axpy(sums_.view({1}), rows, loss);
  axpy(sums_.view({2}, 1), 1.f, hits);
}

void Meters::send() {
  CHECK(!sent_, "sums are on their way already");
  copy_bytes(arriving_, sums_);
  arrived_ = current_stream(sums_.device()).record();
  fill(sums_, 0.f);
  sent_ = true;
}

bool Meters::take() {
  if (!sent_) return true;
  arrived_.sync();
  sent_ = false;
  const float* s = arriving_.data<float>();
  const Sums more{s[0], s[1], s[2]};
  recent += more;
  epoch += more;
  total += more;
  return std::isfinite(more.loss);
}

void Meters::visit(Archive& a) {
  Under r(a, "recent."), e(a, "epoch."), t(a, "total.");
  recent.visit(r);
  epoch.visit(e);
  total.visit(t);
}

}  // namespace skein::apps
