// NCCL's table without a device; groups of threads on a table that stands in for it; a group of one on a
// device.
#include "engine/cuda/nccl.h"

#include <cstring>
#include <thread>

#include "engine/cuda/nccl_library.h"
#include "tests/fake_group.h"
#include "tests/testing.h"

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
struct Member {
  int rank = 0;
  std::shared_ptr<Table> table;
  int patience = 2;  // still forming, so often
};
Member* member(ncclComm_t c) { return reinterpret_cast<Member*>(c); }

ncclResult_t fake_id(ncclUniqueId* id) {
  static std::atomic<int> next{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "table %d", next++);
  return ncclSuccess;
}
ncclResult_t fake_init(ncclComm_t* c, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  EXPECT_EQ(config->blocking, 0);
  *c = reinterpret_cast<ncclComm_t>(new Member{rank, table_of(id.internal, size)});
  return ncclInProgress;
}
ncclResult_t fake_state(ncclComm_t c, ncclResult_t* state) {
  *state = member(c)->table->ended()   ? ncclRemoteError
           : member(c)->patience-- > 0 ? ncclInProgress
                                       : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t fake_abort(ncclComm_t c) {
  member(c)->table->end();
  delete member(c);
  return ncclSuccess;
}
ncclResult_t fake_sum(const void* from, void* to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                      cudaStream_t) {
  EXPECT_TRUE(from == to && op == ncclSum);
  member(c)->table->meet(member(c)->rank, to, [&](const std::vector<void*>& all) {
    if (t == ncclFloat32) sum_into_all<float>(all, int64_t(n));
    if (t == ncclInt64) sum_into_all<int64_t>(all, int64_t(n));
  });
  return ncclSuccess;
}
ncclResult_t fake_broadcast(const void*, void* to, size_t n, ncclDataType_t t, int root, ncclComm_t c,
                            cudaStream_t) {
  EXPECT_EQ(t, ncclFloat32);
  member(c)->table->meet(member(c)->rank, to, [&](const std::vector<void*>& all) {
    for (void* x : all)
      if (x != all[size_t(root)]) std::memcpy(x, all[size_t(root)], 4 * n);
  });
  return ncclSuccess;
}
const char* fake_words(ncclResult_t) { return "a fake error"; }
const char* fake_last(ncclComm_t) { return ""; }
ncclResult_t fake_version(int* v) { return *v = 20000, ncclSuccess; }

// While it lives.
struct FakeNccl {
  FakeNccl() {
    table.ncclGetVersion = fake_version, table.ncclGetUniqueId = fake_id;
    table.ncclCommInitRankConfig = fake_init, table.ncclCommGetAsyncError = fake_state;
    table.ncclCommAbort = fake_abort, table.ncclAllReduce = fake_sum, table.ncclBroadcast = fake_broadcast;
    table.ncclGetErrorString = fake_words, table.ncclGetLastError = fake_last;
    cuda::stand_in(&table);
  }
  ~FakeNccl() { cuda::stand_in(nullptr); }
  cuda::Nccl table;
};

void on_threads(int n, const std::function<void(int)>& f) {
  std::vector<std::thread> all;
  for (int r = 0; r < n; ++r) all.emplace_back(f, r);
  for (std::thread& t : all) t.join();
}

TEST(NcclOnFunctions, FormsAGroupByAnIdAndWorks) {
  const FakeNccl fake;
  const DeviceGroups groups = nccl_groups();
  EXPECT_EQ(groups.name, "NCCL 2.0.0");
  const std::string id = groups.new_id();
  EXPECT_EQ(id.size(), 128u);
  EXPECT_NE(id, groups.new_id());
  on_threads(3, [&](int r) {
    const auto group = groups.form(id, r, 3, kCpu, 5);
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
    group->all_reduce(x, s);  // all are here until all have looked
  });
}

TEST(NcclOnFunctions, AnEndedGroupSaysSoAndAMemberThatNeverComesToo) {
  const FakeNccl fake;
  const DeviceGroups groups = nccl_groups();
  const auto group = groups.form(groups.new_id(), 0, 2, kCpu, 5);
  group->abort();
  group->abort();  // once is enough
  EXPECT_THROW(group->all_reduce(Tensor({1}), current_stream(kCpu)), Error);
  FakeNccl slow;
  slow.table.ncclCommGetAsyncError = [](ncclComm_t, ncclResult_t* state) {
    return *state = ncclInProgress, ncclSuccess;
  };
  EXPECT_THROW(groups.form(groups.new_id(), 0, 2, kCpu, 0.05), Error);
}

class NcclGroup : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, NcclGroup, ::testing::Values(kFirstGpu), device_name);

TEST_P(NcclGroup, OfOneSumsToItself) {
  cuda::NcclGroup group(cuda::new_nccl_id(), 0, 1, GetParam());
  Stream& s = current_stream(GetParam());
  for (DType t : {kF32, kBF16, kF16}) {
    const Tensor host = random_uniform({1000}, 1, -1, 1, t), x = host.to(GetParam()),
                 y = Tensor::zeros({1000}, t, GetParam());
    group.all_reduce(x, s);
    EXPECT_TRUE(allclose(x, host));
    group.broadcast(x, 0, s);
    group.reduce_scatter(y, x, s);
    EXPECT_TRUE(allclose(y, host));
    group.all_gather(x, y, s);
    EXPECT_TRUE(allclose(x, host));
  }
  group.check_health();
}

TEST_P(NcclGroup, SaysWhenAMemberNeverComes) {
  EXPECT_THROW(cuda::NcclGroup(cuda::new_nccl_id(), 0, 2, GetParam(), 2.0), Error);
}

}  // namespace
}  // namespace skein
