// Philox draws into tensors, and the scope dropout takes its draws from.
#include "engine/random.h"

#include <cmath>

#include "engine/launch.h"

namespace skein {
namespace {

template <class T>
struct Uniform {
  T* x;
  Draw draw;
  float lo, hi;
  HD void operator()(int64_t i) const { x[i] = T(lo + (hi - lo) * draw.unit(uint64_t(i))); }
};
// Element 2j and 2j+1 share words 2j and 2j+1; the radius uses (0, 1] so that its logarithm is finite.
template <class T>
struct Normal {
  T* x;
  Draw draw;
  float mean, std;
  HD void operator()(int64_t i) const {
    const uint64_t pair = uint64_t(i) & ~uint64_t(1);
    const float u = 1.f - draw.unit(pair), angle = 6.283185307179586f * draw.unit(pair + 1);
    const float radius = sqrtf(-2.f * logf(u));
    x[i] = T(mean + std * radius * (i & 1 ? sinf(angle) : cosf(angle)));
  }
};

thread_local RandomScope* g_scope = nullptr;

}  // namespace

void fill_uniform(const Tensor& x, const Draw& draw, float lo, float hi) {
  visit_float(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each(x.device(), x.size(), Uniform<T>{x.data<T>(), draw, lo, hi});
  });
}
void fill_normal(const Tensor& x, const Draw& draw, float mean, float std) {
  visit_float(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_each(x.device(), x.size(), Normal<T>{x.data<T>(), draw, mean, std});
  });
}

// A step has lanes rank * 4096 + call, so 4,096 ranks with as many dropout layers each never share one.
RandomScope::RandomScope(uint64_t seed, uint64_t step, uint32_t rank)
    : next_{seed, Purpose::kDropout, step, rank << 12}, outer_(g_scope) {
  g_scope = this;
}
RandomScope::~RandomScope() { g_scope = outer_; }
Draw RandomScope::next_draw() {
  CHECK(g_scope, "dropout while training needs a RandomScope around the step");
  Draw d = g_scope->next_;
  ++g_scope->next_.lane;
  return d;
}

}  // namespace skein
