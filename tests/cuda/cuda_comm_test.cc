// Tensors on a GPU are sent between ranks that share it through the host's pinned memory.
#include <cuda_runtime.h>

#include <set>

#include "comm/communicator/device_way.h"
#include "comm/communicator/staging.h"
#include "engine/device/device_use.h"
#include "tests/support/testing.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using namespace skein::testing;

class CudaComm : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, CudaComm, ::testing::Values(kFirstGpu), device_name);

TEST_P(CudaComm, StagingBringsBytesBothWays) {
  Staging staging;
  const Tensor x = random_uniform({1 << 20}, 1), there = x.to(GetParam());
  const Staging::Landing landing = staging.down(there);
  landing.ready.sync();
  EXPECT_EQ(values(landing.host), values(x));
  for (int i = 0; i < 20; ++i) {  // blocks are reused while copies are in flight
    const Tensor host = random_uniform({1 << 20}, uint64_t(i)), up = staging.beside(GetParam(), host);
    const std::vector<double> want = values(host);
    fill(host, 0.f);  // it may be written again at once
    EXPECT_EQ(values(up), want);
  }
}

// A fake group that records the streams on which it was asked to sum, and sums nothing.
class Asked final : public DeviceGroup {
 public:
  Asked(Device d, std::set<void*>& streams) : device_(d), streams_(streams) {}
  Device device() const override { return device_; }
  void all_reduce(const Tensor&, Stream& s) override { streams_.insert(s.handle()); }
  void broadcast(const Tensor&, int, Stream& s) override { streams_.insert(s.handle()); }
  void check_health() const override {}
  void abort() noexcept override {}

 private:
  const Device device_;
  std::set<void*>& streams_;
};

TEST_P(CudaComm, SumsBetweenGpusGoBesideTheComputationAndBeforeIt) {
  in_local_world(2, [&](Communicator& c) {
    std::set<void*> streams;
    DeviceGroups groups{.name = "none", .new_id = [] { return std::string("one"); }, .form = {}};
    groups.form = [&](const std::string&, int, int, Device d, double) {
      return std::make_unique<Asked>(d, streams);
    };
    c.use_devices(DeviceWish::kGroup,
                  {.device = GetParam(), .gpu = text("gpu ", c.rank()), .groups = groups, .trouble = ""});
    const Tensor x({10}, kF32, GetParam());
    fill(x, 1.f);
    c.all_reduce(x).wait();
    c.broadcast(x, 0);
    ASSERT_EQ(streams.size(), 1u);
    EXPECT_EQ(streams.count(current_stream(GetParam()).handle()), 0u);
    int lowest = 0, highest = 0, priority = 0;
    cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    cudaStreamGetPriority(static_cast<cudaStream_t>(*streams.begin()), &priority);
    EXPECT_EQ(priority, highest);
  });
}

TEST_P(CudaComm, AWorldOfOneLeavesTensorsOnTheDevice) {
  WorldOfOne alone;
  Communicator& c = alone;
  std::set<void*> streams;
  DeviceGroups groups{.name = "none", .new_id = [] { return std::string("one"); }, .form = {}};
  groups.form = [&](const std::string&, int, int, Device d, double) {
    return std::make_unique<Asked>(d, streams);
  };
  const Tensor x = random_uniform({100000}, 1), there = x.to(GetParam());
  for (const bool joined : {false, true}) {
    if (joined)
      c.use_devices(DeviceWish::kGroup, {.device = GetParam(), .gpu = "a", .groups = groups, .trouble = ""});
    EXPECT_TRUE(c.all_reduce(there).done());  // through the host it would still be in flight
    c.broadcast(there, 0);
  }
  EXPECT_TRUE(streams.empty());
  EXPECT_EQ(values(there), values(x));
}

TEST_P(CudaComm, RanksThatShareAGpuSumByWayOfTheHost) {
  const Device d = GetParam();
  in_local_world(3, [&](Communicator& c) {
    const std::string said = c.use_devices(
        DeviceWish::kAuto, {.device = d, .gpu = "the one", .groups = nccl_groups(), .trouble = ""});
    EXPECT_NE(said.find("share a GPU"), std::string::npos) << said;
    for (int64_t n : {10, 3000, 1000000}) {
      const Tensor a({n}, kF32, d), b({n}, kF32, d);
      fill(a, float(c.rank() + 1)), fill(b, 1.f);
      Pendings sums;
      sums += c.all_reduce(a);
      sums += c.all_reduce(b);
      sums.wait();
      EXPECT_EQ(values(a), std::vector<double>(size_t(n), 6.0));
      EXPECT_EQ(values(b), std::vector<double>(size_t(n), 3.0));
      fill(a, float(c.rank()));
      c.broadcast(a, 2);
      EXPECT_EQ(values(a), std::vector<double>(size_t(n), 2.0));
      c.push((c.rank() + 1) % 3, 1, n, 0.5f, b);
      const Message m = c.take((c.rank() + 2) % 3, 1, n, b);
      EXPECT_EQ(m.payload.device(), d);
      EXPECT_EQ(values(m.payload), std::vector<double>(size_t(n), 1.5));
    }
  });
}

}  // namespace
}  // namespace skein::comm
