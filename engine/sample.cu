// A sample's places are computed where they are needed, so no list of them is kept.
#include "engine/sample.h"

#include "engine/loops/launch.h"

namespace skein {
namespace {

struct Places {
  Draw draw;
  int64_t m, n;
  HD int64_t operator[](int64_t j) const {
    const int64_t begin = j * n / m, length = (j + 1) * n / m - begin;
    return begin + int64_t(draw.bits(uint64_t(j))) % length;
  }
};
struct TakeSample {
  float* values;
  const float* x;
  Places places;
  HD void operator()(int64_t j) const { values[j] = x[places[j]]; }
};
struct PutSample {
  float* x;
  const float* values;
  Places places;
  HD void operator()(int64_t j) const { x[places[j]] = values[j]; }
};

Places places_of(const Tensor& values, const Tensor& x, const Draw& draw) {
  CHECK(values.dtype() == kF32 && x.dtype() == kF32 && values.size() <= x.size() &&
            values.device() == x.device(),
        values.dtype(), x.dtype(), values.size(), x.size(), values.device(), x.device());
  return {draw, values.size(), x.size()};
}

}  // namespace

void take_sample(const Tensor& values, const Tensor& x, const Draw& draw) {
  const Places places = places_of(values, x, draw);
  for_each(x.device(), values.size(), TakeSample{values.out<float>(), x.in<float>(), places});
}
void put_sample(const Tensor& x, const Tensor& values, const Draw& draw) {
  const Places places = places_of(values, x, draw);
  for_each(x.device(), values.size(), PutSample{x.out<float>(), values.in<float>(), places});
}

}  // namespace skein
