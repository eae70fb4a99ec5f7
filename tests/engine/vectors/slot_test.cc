// Slots in recorded work.
#include "engine/vectors/slot.h"

#include "engine/device/graph.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;

class Slots : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Slots, kDevices, device_name);

TEST_P(Slots, AreNotWrittenInARecording) {
  Slot<float> slot(GetParam());
  Recorded work(GetParam(), "the body");
  const auto body = [&] { slot.write(1.f); };
  work.run({}, body);
  EXPECT_THROW(work.run({}, body), Error);
}

}  // namespace
}  // namespace skein
