// Stream capture by the CUDA runtime, version 12 and up.
#include "engine/cuda/graph.h"

#include <cuda_runtime.h>

#include "engine/base.h"

namespace skein::cuda {
namespace {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch would report it
  throw Error(
      text("CUDA: ", what, " failed: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}
cudaStream_t stream_of(void* s) { return static_cast<cudaStream_t>(s); }

// A captured graph is only needed until it is instantiated.
struct Captured {
  cudaGraph_t graph = nullptr;
  ~Captured() {
    if (graph) cudaGraphDestroy(graph);
  }
};

}  // namespace

void begin_capture(void* stream) {
  check(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

Graph end_capture(void* stream) {
  Captured captured;
  check(cudaStreamEndCapture(stream_of(stream), &captured.graph), "cudaStreamEndCapture");
  size_t nodes = 0;
  check(cudaGraphGetNodes(captured.graph, nullptr, &nodes), "cudaGraphGetNodes");
  Graph made;
  made.nodes = int64_t(nodes);
  if (nodes == 0) return made;
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, captured.graph, 0), "cudaGraphInstantiate");
  made.executable = {executable, [](void* e) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(e)); }};
  check(cudaGraphUpload(executable, stream_of(stream)), "cudaGraphUpload");
  return made;
}

bool abandon_capture(void* stream) noexcept {
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream_of(stream), &graph);
  if (graph) cudaGraphDestroy(graph);
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

void launch(const Graph& g, void* stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(g.executable.get()), stream_of(stream)),
        "cudaGraphLaunch");
}

}  // namespace skein::cuda
