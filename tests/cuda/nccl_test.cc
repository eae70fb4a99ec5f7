// NCCL's table without a device; groups of threads, alone and behind a Communicator, on a fake table; a group
// of one on a device.
#include "engine/cuda/nccl.h"

#include <cstdlib>
#include <filesystem>

#include "comm/communicator/device_way.h"
#include "engine/vectors/vec.h"
#include "tests/cuda/fake_nccl.h"
#include "tests/support/world.h"

namespace skein {
namespace {
using namespace testing;

TEST(Nccl, OpensAndKnowsItsVersion) {
  int version = 0;
  cuda::check(cuda::nccl().ncclGetVersion(&version), "ncclGetVersion");
  EXPECT_GE(version, 21800);
  EXPECT_THROW(cuda::check(ncclInvalidArgument, "flying"), Error);
}

// ---- functions in NCCL's place: members are threads, "devices" are memory of the host
using comm::on_threads;
ncclResult_t sum_of(const FakeNccl& fake, ncclComm_t c, float* x) {
  return fake.table.ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, c, nullptr);
}

TEST(FakeNccl, RefusesACallWhileAnotherIsInProgressAndKeepsTheError) {
  const FakeNccl fake;
  ncclUniqueId id;
  fake.table.ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t c = nullptr;
  EXPECT_EQ(fake.table.ncclCommInitRankConfig(&c, 1, id, 0, &config), ncclInProgress);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) fake.table.ncclCommGetAsyncError(c, &state);
  EXPECT_EQ(state, ncclSuccess);
  float x = 1;
  EXPECT_EQ(sum_of(fake, c, &x), ncclInProgress);
  EXPECT_EQ(sum_of(fake, c, &x), ncclInvalidArgument);
  fake.table.ncclCommGetAsyncError(c, &state);
  EXPECT_EQ(state, ncclInvalidArgument);
  EXPECT_EQ(fake.table.ncclCommDestroy(c), ncclInvalidArgument);
  fake.table.ncclCommAbort(c);
}

TEST(NcclOnFunctions, FormsAGroupByAnIdAndWorks) {
  const FakeNccl fake;
  const DeviceGroups groups = cuda::groups_by(fake.table);
  EXPECT_EQ(groups.name, "NCCL 2.0.0");
  const std::string id = groups.new_id();
  EXPECT_EQ(id.size(), 128u);
  EXPECT_NE(id, groups.new_id());
  on_threads(3, [&](int r) {
    const auto group = groups.form(id, r, 3, kCpu, 60);
    Stream& s = current_stream(kCpu);
    const Tensor x = Tensor::of<float>({2}, {1, float(r)}), n = Tensor::of<int64_t>({1}, {int64_t(r)});
    group->all_reduce(x, s);
    group->all_reduce(n, s);
    EXPECT_EQ(values(x), (std::vector<double>{3, 3}));
    EXPECT_EQ(n.data<int64_t>()[0], 3);
    const Tensor y = Tensor::of<float>({1}, {float(r)});
    group->broadcast(y, 1, s);
    EXPECT_EQ(values(y)[0], 1.0);
    group->check_health();
  });
}

// Like a step that hands over its gradient in slices: each call begins when the previous one is on the
// stream, and returns when it is on the stream itself.
TEST(NcclOnFunctions, SumsOneAfterAnotherAreNotRefusedAndDoneWhenTheirEventsAre) {
  const FakeNccl fake;
  comm::in_local_world(3, [&](comm::Communicator& c) {
    c.use_devices(comm::DeviceWish::kAuto, {.device = kCpu,
                                            .gpu = text("gpu ", c.rank()),
                                            .groups = cuda::groups_by(fake.table),
                                            .trouble = ""});
    for (int step = 0; step < 3; ++step) {
      std::vector<Tensor> slices;
      comm::Pendings sums;
      for (int i = 0; i < 20; ++i) {
        slices.push_back(Tensor::of<float>({2}, {float(i), float(c.rank() + step)}));
        sums += c.all_reduce(slices.back());
      }
      sums.wait();
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(values(slices[size_t(i)]), (std::vector<double>{3. * i, 3. + 3 * step}));
      const Tensor x = Tensor::of<float>({1}, {float(c.rank())});
      c.broadcast(x, 2);
      EXPECT_EQ(values(x)[0], 2.0);
    }
  });
  EXPECT_EQ(fake.counts.refused, 0);
  EXPECT_EQ(fake.counts.calls, 3 * (3 * 21 + 1));
}

TEST(NcclOnFunctions, AGroupEndsTogetherAndIsNotAborted) {
  const FakeNccl fake;
  const DeviceGroups groups = cuda::groups_by(fake.table);
  const std::string id = groups.new_id();
  on_threads(3, [&](int r) {
    const auto group = groups.form(id, r, 3, kCpu, 60);
    const Tensor x = Tensor::of<float>({1}, {1});
    group->all_reduce(x, current_stream(kCpu));
  });
  EXPECT_EQ(fake.counts.finalized, 3);
  EXPECT_EQ(fake.counts.destroyed, 3);
  EXPECT_EQ(fake.counts.aborted, 0);
}

TEST(NcclOnFunctions, AnExceptionAbortsAndTheOtherMembersFailInsteadOfWaiting) {
  const FakeNccl fake;
  const DeviceGroups groups = cuda::groups_by(fake.table);
  const std::string id = groups.new_id();
  on_threads(2, [&](int r) {
    const auto live = [&] {
      const auto group = groups.form(id, r, 2, kCpu, 600);
      if (r == 1) throw Error("something else");
      group->all_reduce(Tensor({1}), current_stream(kCpu));
    };
    EXPECT_THROW(live(), Error);
  });
  EXPECT_EQ(fake.counts.finalized, 0);
  EXPECT_EQ(fake.counts.aborted, 2);
}

TEST(NcclOnFunctions, AnEndedGroupSaysSoAndAMemberThatNeverComesToo) {
  const FakeNccl fake;
  const DeviceGroups groups = cuda::groups_by(fake.table);
  const auto group = groups.form(groups.new_id(), 0, 1, kCpu, 60);
  group->abort();
  group->abort();  // once is enough
  EXPECT_EQ(fake.counts.aborted, 1);
  EXPECT_THROW(group->all_reduce(Tensor({1}), current_stream(kCpu)), Error);
  EXPECT_THROW(groups.form(groups.new_id(), 0, 2, kCpu, 0.05), Error);
  EXPECT_EQ(fake.counts.aborted, 2);
}

TEST(NcclOnFunctions, WorkThatIsNeverQueuedIsGivenUpAtTheDeadline) {
  FakeNccl fake;
  const DeviceGroups groups = cuda::groups_by(fake.table);
  const auto group = groups.form(groups.new_id(), 0, 1, kCpu, 2);
  fake.stuck = true;
  EXPECT_THROW(group->all_reduce(Tensor({1}), current_stream(kCpu)), Error);
  EXPECT_EQ(fake.counts.aborted, 1);
  EXPECT_THROW(group->all_reduce(Tensor({1}), current_stream(kCpu)), Error);
}

TEST(NcclOnFunctions, AnEndThatTheOthersNeverComeToIsGivenUpAtTheDeadline) {
  FakeNccl fake;
  const DeviceGroups groups = cuda::groups_by(fake.table);
  auto group = groups.form(groups.new_id(), 0, 1, kCpu, 2);
  fake.stuck = true;
  group.reset();
  EXPECT_EQ(fake.counts.finalized, 1);
  EXPECT_EQ(fake.counts.destroyed, 0);
  EXPECT_EQ(fake.counts.aborted, 1);
}

class NcclGroup : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, NcclGroup, ::testing::Values(kFirstGpu), device_name);

TEST_P(NcclGroup, OfOneSumsToItself) {
  cuda::NcclGroup group(cuda::new_nccl_id(), 0, 1, GetParam());
  Stream& s = current_stream(GetParam());
  for (DType t : {kF32, kBF16, kF16}) {
    const Tensor host = random_uniform({1000}, 1, -1, 1, t), x = host.to(GetParam());
    group.all_reduce(x, s);
    EXPECT_TRUE(allclose(x, host));
    group.broadcast(x, 0, s);
    EXPECT_TRUE(allclose(x, host));
  }
  group.check_health();
}

TEST_P(NcclGroup, SaysWhenAMemberNeverComes) {
  EXPECT_THROW(cuda::NcclGroup(cuda::new_nccl_id(), 0, 2, GetParam(), 2.0), Error);
}

// Two processes share the GPU and claim to be different hosts, because NCCL refuses them otherwise. NVIDIA
// does not support that and it may hang, so it runs only if SKEIN_NCCL_PAIR is "1", or the id of a pair whose
// second member this is.
class NcclPair : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, NcclPair, ::testing::Values(kFirstGpu), device_name);

std::string hex_of(const cuda::NcclId& id) {
  std::string digits;
  for (const char c : id) digits += "0123456789abcdef"[(c >> 4) & 15], digits += "0123456789abcdef"[c & 15];
  return digits;
}
cuda::NcclId id_of(const std::string& digits) {
  cuda::NcclId id{};
  for (size_t i = 0; i < id.size(); ++i) id[i] = char(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  return id;
}

TEST_P(NcclPair, OnOneGpuSumsSliceAfterSlice) {
  const char* const asked = std::getenv("SKEIN_NCCL_PAIR");
  if (!asked) GTEST_SKIP() << "skipped: SKEIN_NCCL_PAIR does not ask for it";
  const bool first = std::string(asked) == "1";
  setenv("NCCL_HOSTID", first ? "skein-0" : "skein-1", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  const cuda::NcclId id = first ? cuda::new_nccl_id() : id_of(asked);
  FILE* second = nullptr;
  if (first) {
    const std::string me = std::filesystem::read_symlink("/proc/self/exe");
    second = popen(("SKEIN_NCCL_PAIR=" + hex_of(id) + " " + me + " --gtest_filter=*NcclPair*").c_str(), "w");
    ASSERT_NE(second, nullptr);
  }
  {
    cuda::NcclGroup group(id, first ? 0 : 1, 2, GetParam(), 20);
    Stream side(GetParam());
    std::vector<Tensor> slices;
    for (int i = 0; i < 20; ++i) {
      slices.emplace_back(Shape{1 << 20}, kF32, GetParam());
      fill(slices.back(), float(i) + (first ? 0.f : 0.5f));
      side.wait(current_stream(GetParam()).record());
      group.all_reduce(slices.back(), side);
    }
    current_stream(GetParam()).wait(side.record());
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(allclose(slices[size_t(i)], std::vector<double>(1 << 20, 2. * i + 0.5))) << i;
  }
  if (second) { EXPECT_EQ(pclose(second), 0); }
}

}  // namespace
}  // namespace skein
