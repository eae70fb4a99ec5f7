// NCCL's table without a device; a group of one on one.
#include "engine/cuda/nccl.h"
#include "engine/cuda/nccl_library.h"
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

class NcclGroup : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, NcclGroup, ::testing::Values(kFirstGpu), device_name);

TEST_P(NcclGroup, OfOneSumsToItself) {
  cuda::NcclGroup group(cuda::new_nccl_id(), 0, 1, GetParam());
  for (DType t : {kF32, kBF16}) {
    const Tensor host = random_uniform({1000}, 1, -1, 1, t), x = host.to(GetParam()),
                 y = Tensor::zeros({1000}, t, GetParam());
    group.all_reduce(x);
    EXPECT_TRUE(allclose(x, host));
    group.broadcast(x, 0);
    group.reduce_scatter(y, x);
    EXPECT_TRUE(allclose(y, host));
    group.all_gather(x, y);
    EXPECT_TRUE(allclose(x, host));
  }
  group.check_health();
}

TEST_P(NcclGroup, SaysWhenAMemberNeverComes) {
  EXPECT_THROW(cuda::NcclGroup(cuda::new_nccl_id(), 0, 2, GetParam(), 2.0), Error);
}

}  // namespace
}  // namespace skein
