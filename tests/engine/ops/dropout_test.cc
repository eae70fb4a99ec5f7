// Dropout against its draws.
#include "tests/engine/ops/op_on_device.h"

namespace skein {
namespace {
using namespace testing;

class Dropouts : public OpOnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Dropouts, kDevices, device_name);

TEST_P(Dropouts, DropoutIsAFunctionOfItsDraw) {
  const Draw d{42, Purpose::kDropout, 7, 3};
  const float p = 0.3f;
  const Tensor x = random_off_zero({1003}, 1);
  std::vector<double> want;
  for (int64_t i = 0; i < x.size(); ++i)
    want.push_back(d.unit(uint64_t(i)) >= p ? double(x.data<float>()[i]) / (1 - double(p)) : 0.0);
  EXPECT_TRUE(allclose(dropout(there(x), p, d), want));
  EXPECT_GT(std::count(want.begin(), want.end(), 0.0), 250);
  EXPECT_LT(std::count(want.begin(), want.end(), 0.0), 350);
  EXPECT_EQ(dropout(x, 0, d).id(), x.id());
  EXPECT_THROW(dropout(x, 1, d), Error);
  check([&](const Values& v) { return dropout(v[0], p, d); }, {x});
}

}  // namespace
}  // namespace skein
