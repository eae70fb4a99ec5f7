// Which storage owns a 16-bit copy, when the copy is current, and when it may be used.
#include "engine/vectors/narrow.h"

#include "engine/vectors/vec.h"

namespace skein {
namespace {

std::shared_ptr<Narrow> of(const Tensor& x) {
  return x ? std::static_pointer_cast<Narrow>(x.storage()->derived()) : nullptr;
}

}  // namespace

void keep_narrow(const Tensor& x, DType t) {
  CHECK(x.dtype() == kF32 && x.offset() == 0 && size_of(t) == 2, x.dtype(), x.offset(), t);
  CHECK(!of(x), "this vector has a 16-bit copy already");
  auto n = std::make_shared<Narrow>();
  n->values = Tensor({x.size()}, t, x.device());
  x.storage()->keep(std::move(n));
}

Tensor narrow_of(const Tensor& x, DType t) {
  const std::shared_ptr<Narrow> n = of(x);
  if (!n || n->trusting == 0 || n->values.dtype() != t || x.dtype() != kF32) return {};
  if (x.offset() + x.size() > n->values.size()) return {};
  return n->values.view(x.shape(), x.offset());
}

void refresh_narrow(const Tensor& x) {
  NarrowPass low(x);
  if (!low.values) return;
  copy(low.values, x);
  low.done();
}

TrustNarrow::TrustNarrow(const Tensor& x) : narrow_(of(x)) {
  if (!narrow_) return;
  if (!narrow_->current) {
    copy(narrow_->values, x.view({narrow_->values.size()}));
    narrow_->current = true;
  }
  ++narrow_->trusting;
}
TrustNarrow::~TrustNarrow() {
  if (narrow_) --narrow_->trusting;
}

NarrowPass::NarrowPass(const Tensor& x) : narrow_(of(x)) {
  if (narrow_ && (x.offset() != 0 || x.size() != narrow_->values.size())) narrow_.reset();
  if (narrow_) values = narrow_->values;
}
void NarrowPass::done() {
  if (narrow_) narrow_->current = true;
}

}  // namespace skein
