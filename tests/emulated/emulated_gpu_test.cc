// Tests the emulated device itself: it must detect the faults it is made for.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "comm/ucx/ucx_library.h"
#include "engine/base.h"
#include "tests/emulated/launch.h"

namespace skein {
namespace {

struct Block {  // n floats of the device's memory
  float* p = nullptr;
  explicit Block(size_t n) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&p), n * sizeof(float)), cudaSuccess);
  }
  ~Block() { cudaFree(p); }
};
struct Queue {
  cudaStream_t s = nullptr;
  Queue() { cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); }
  ~Queue() { cudaStreamDestroy(s); }
  cudaStream_t operator*() const { return s; }
};
struct Mark {
  cudaEvent_t e = nullptr;
  Mark() { cudaEventCreateWithFlags(&e, cudaEventDisableTiming); }
  ~Mark() { cudaEventDestroy(e); }
  cudaEvent_t operator*() const { return e; }
};

struct Set {
  float* y;
  float v;
  void operator()(int64_t i) const { y[i] = v; }
};
struct Add {
  float *y, *x;
  void operator()(int64_t i) const { y[i] += x[i]; }
};

std::vector<float> read(const float* p, size_t n, cudaStream_t s) {
  std::vector<float> v(n);
  EXPECT_EQ(cudaMemcpyAsync(v.data(), p, n * sizeof(float), cudaMemcpyDefault, s), cudaSuccess);
  return v;
}

TEST(EmulatedGpuDeathTest, TheHostMayNotTouchItsMemory) {
  Block b(16);
  EXPECT_EXIT(b.p[3] = 1, ::testing::ExitedWithCode(3), "the host touched memory of the device");
  EXPECT_EXIT(fprintf(stderr, "%f", double(b.p[3])), ::testing::ExitedWithCode(3), "the host touched");
}

TEST(EmulatedGpuDeathTest, KernelsMayNotTouchTheHosts) {
  Queue q;
  std::vector<float> host(16);
  EXPECT_EXIT(emulated::each(*q, 16, Set{host.data(), 1}), ::testing::ExitedWithCode(3),
              "address of the host's memory");
  Block b(16);
  EXPECT_EXIT(emulated::each(*q, 16, Add{b.p, host.data()}), ::testing::ExitedWithCode(3), "word 1");
}

TEST(EmulatedGpuDeathTest, CopiesStayInsideABlock) {
  Queue q;
  Block b(16);
  std::vector<float> host(17);
  EXPECT_EXIT(cudaMemcpyAsync(b.p, host.data(), 17 * 4, cudaMemcpyDefault, *q), ::testing::ExitedWithCode(3),
              "beyond");
}

TEST(EmulatedGpu, NewMemoryHoldsNaNs) {
  Queue q;
  Block b(16);
  for (float v : read(b.p, 16, *q)) EXPECT_TRUE(std::isnan(v));
}

TEST(EmulatedGpu, WorkOfAnotherStreamIsSeenByWhoWaitsForIt) {
  Queue one, other;
  Mark done;
  Block b(4);
  emulated::each(*other, 4, Set{b.p, 1});
  cudaStreamSynchronize(*other);
  emulated::each(*one, 4, Set{b.p, 2});
  EXPECT_EQ(read(b.p, 4, *other)[0], 1);  // without a wait it is never 2 by luck
  cudaEventRecord(*done, *one);
  EXPECT_EQ(cudaEventQuery(*done), cudaErrorNotReady);
  emulated::each(*one, 4, Set{b.p, 3});  // after the event
  cudaStreamWaitEvent(*other, *done, 0);
  EXPECT_EQ(read(b.p, 4, *other)[0], 2);
  EXPECT_EQ(cudaEventQuery(*done), cudaSuccess);
  EXPECT_EQ(read(b.p, 4, *one)[0], 3);
}

TEST(EmulatedGpu, CopiesReadPinnedMemoryLateAndOtherMemoryAtOnce) {
  Queue q;
  Block b(1);
  float* pinned = nullptr;
  cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(float));
  *pinned = 1;
  cudaMemcpyAsync(b.p, pinned, sizeof(float), cudaMemcpyDefault, *q);
  *pinned = 2;
  EXPECT_EQ(read(b.p, 1, *q)[0], 2);
  float other = 3;
  cudaMemcpyAsync(b.p, &other, sizeof(float), cudaMemcpyDefault, *q);
  other = 4;
  EXPECT_EQ(read(b.p, 1, *q)[0], 3);
  cudaMemcpyAsync(pinned, b.p, sizeof(float), cudaMemcpyDefault, *q);
  EXPECT_EQ(*pinned, 2);  // not arrived yet
  cudaStreamSynchronize(*q);
  EXPECT_EQ(*pinned, 3);
  cudaFreeHost(pinned);
}

struct SumOfLanes {
  float* y;
  template <class Team>
  void operator()(int64_t t, Team team) const {
    const float sum = team.sum(float(team.lane() + t)), most = team.max(float(team.lane()));
    if (team.lane() == 31) y[t] = sum + 1000 * most;
  }
};
TEST(EmulatedGpu, LanesOfAWarpSumSideBySide) {
  Queue q;
  Block b(100);
  emulated::teams(*q, 100, SumOfLanes{b.p});
  const std::vector<float> v = read(b.p, 100, *q);
  for (int t = 0; t < 100; ++t) EXPECT_EQ(v[size_t(t)], float(31 * 16 + 32 * t + 31000));
}

struct HalfLeaves {
  float* y;
  template <class Team>
  void operator()(int64_t, Team team) const {
    if (team.lane() >= 16) return;
    *y = team.sum(1.f);
  }
};
TEST(EmulatedGpuDeathTest, ALaneThatHasLeftIsMissed) {
  Queue q;
  Block b(1);
  const auto launch = [&] { emulated::teams(*q, 1, HalfLeaves{b.p}), cudaStreamSynchronize(*q); };
  EXPECT_EXIT(launch(), ::testing::ExitedWithCode(3), "has left its warp");
}

TEST(EmulatedUcxDeathTest, IsToldWhoseMemoryItGets) {
  Block b(16);
  std::vector<float> host(16);
  const auto send = [](void* from, size_t bytes, uint32_t told, ucs_memory_type_t type) {
    ucp_request_param_t p{};
    p.op_attr_mask = told, p.memory_type = type;
    comm::ucx().ucp_am_send_nbx(nullptr, 1, nullptr, 0, from, bytes, &p);
  };
  const uint32_t told = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  const auto end = ::testing::ExitedWithCode(3);
  EXPECT_EXIT(send(b.p, 64, told, UCS_MEMORY_TYPE_HOST), end, "wrong type of memory");
  EXPECT_EXIT(send(host.data(), 64, told, UCS_MEMORY_TYPE_CUDA), end, "wrong type of memory");
  EXPECT_EXIT(send(b.p, 64, 0, UCS_MEMORY_TYPE_CUDA), end, "not told whose memory");
  EXPECT_EXIT(send(b.p, 68, told, UCS_MEMORY_TYPE_CUDA), end, "beyond a block");
}

TEST(EmulatedGpu, CapturedWorkIsDoneWhenTheGraphIsLaunchedAndOnlyThen) {
  Queue q, side;
  Mark fork, join;
  Block a(4), b(4);
  emulated::each(*q, 4, Set{a.p, 0}), emulated::each(*q, 4, Set{b.p, 1});
  cudaStreamBeginCapture(*q, cudaStreamCaptureModeThreadLocal);
  cudaEventRecord(*fork, *q), cudaStreamWaitEvent(*side, *fork, 0);
  emulated::each(*side, 4, Add{a.p, b.p});
  cudaEventRecord(*join, *side), cudaStreamWaitEvent(*q, *join, 0);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(*q, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  EXPECT_EQ(read(a.p, 4, *q)[0], 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, *q);
  EXPECT_EQ(read(a.p, 4, *q)[0], 3);
  cudaGraphExecDestroy(exec);
}

TEST(EmulatedGpu, ACaptureIsSpoiledByWhatCudaForbids) {
  Queue q, side;
  Block b(4);
  Mark m;
  cudaGraph_t graph = nullptr;
  const auto spoiled_by = [&](auto what) {
    cudaStreamBeginCapture(*q, cudaStreamCaptureModeThreadLocal);
    EXPECT_NE(what(), cudaSuccess);
    return cudaStreamEndCapture(*q, &graph);
  };
  void* p = nullptr;
  std::vector<float> host(4);
  EXPECT_EQ(spoiled_by([&] { return cudaStreamSynchronize(*q); }), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(spoiled_by([&] { return cudaMalloc(&p, 64); }), cudaErrorStreamCaptureInvalidated);
  const auto relaxed = [](auto what) {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const cudaError_t status = what();
    return cudaThreadExchangeStreamCaptureMode(&mode), status;
  };
  EXPECT_EQ(spoiled_by([&] { return relaxed([&] { return cudaFree(b.p); }); }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(spoiled_by([&] { return cudaMemcpyAsync(host.data(), b.p, 16, cudaMemcpyDefault, *q); }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(spoiled_by([&] { return cudaEventRecord(*m, *q), cudaEventSynchronize(*m); }),
            cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  cudaStreamBeginCapture(*q, cudaStreamCaptureModeThreadLocal);
  cudaEventRecord(*m, *q), cudaStreamWaitEvent(*side, *m, 0);
  emulated::each(*side, 4, Set{b.p, 1});
  EXPECT_EQ(cudaStreamEndCapture(*q, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaStreamSynchronize(*q), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(*side, *m, 0), cudaErrorCapturedEvent);  // of a capture that has ended
}

TEST(EmulatedGpuDeathTest, AGraphMayNotWorkOnMemoryThatWasGivenBack) {
  Queue q;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  {
    Block b(4);
    cudaStreamBeginCapture(*q, cudaStreamCaptureModeThreadLocal);
    emulated::each(*q, 4, Set{b.p, 1});
    cudaStreamEndCapture(*q, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
  }
  const auto replay = [&] { cudaGraphLaunch(exec, *q), cudaStreamSynchronize(*q); };
  EXPECT_EXIT(replay(), ::testing::ExitedWithCode(3), "memory that was given back");
}

TEST(EmulatedGpu, AnErrorIsReportedByTheNextLaunchUnlessSomebodyAsked) {
  Queue q;
  Block b(1);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, size_t(1) << 40), cudaErrorMemoryAllocation);
  EXPECT_THROW(emulated::each(*q, 1, Set{b.p, 1}), Error);
  EXPECT_EQ(cudaMalloc(&p, size_t(1) << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  emulated::each(*q, 1, Set{b.p, 1});
}

}  // namespace
}  // namespace skein
