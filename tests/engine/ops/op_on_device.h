// OpOnDevice: a fixture for operations on each device, with arguments that are moved there.
#pragma once
#include "tests/support/testing.h"

namespace skein::testing {

class OpOnDevice : public OnDevice {
 protected:
  Tensor there(const Tensor& x) const { return x.to(GetParam()); }
  void check(const Function& f, const Values& in, float step = 1e-2f) const {
    gradcheck(f, in, {.step = step, .device = GetParam()});
  }
};

}  // namespace skein::testing
