// Philox draws into tensors, and the scope dropout takes its draws from.
#include "engine/random.h"

#include <cmath>

#include "engine/loops/launch.h"

namespace skein {
namespace {

template <class T>
struct Uniform {
  T* x;
  Draw draw;
  float lo, hi;
  HD void operator()(int64_t i) const { x[i] = T(lo + (hi - lo) * draw.unit(uint64_t(i))); }
};
// Four elements a call, from the four words of one block: 2j and 2j+1 share words 2j and 2j+1. The radius
// uses (0, 1] so that its logarithm is finite.
template <class T>
struct Normal {
  T* x;
  int64_t size;
  Draw draw;
  float mean, std;
  HD void operator()(int64_t quad) const {
    const Philox4 words = draw.block(uint32_t(quad));
    for (int pair = 0; pair < 4; pair += 2) {
      const float angle = 6.283185307179586f * unit_float(words.v[pair + 1]);
      const float radius = std * sqrtf(-2.f * logf(1.f - unit_float(words.v[pair])));
      const int64_t i = 4 * quad + pair;
      if (i < size) x[i] = T(mean + radius * cosf(angle));
      if (i + 1 < size) x[i + 1] = T(mean + radius * sinf(angle));
    }
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
    for_each(x.device(), (x.size() + 3) / 4, Normal<T>{x.data<T>(), x.size(), draw, mean, std});
  });
}

// A step has lanes rank * 4096 + call, so 4,096 ranks with as many dropout layers each never share one.
RandomScope::RandomScope(uint64_t seed, uint64_t step, uint32_t rank, const uint64_t* step_slot)
    : next_{seed, Purpose::kDropout, step, rank << 12, step_slot}, outer_(g_scope) {
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
