// Stream capture by the CUDA runtime, version 12 and up.
#include "engine/cuda/graph.h"

#include "engine/cuda/status.h"

namespace skein::cuda {
namespace {

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

namespace {
struct Mark {  // a point in the stream's time
  explicit Mark(void* stream) {
    check(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreate");
    if (const cudaError_t status = cudaEventRecord(event, stream_of(stream)); status != cudaSuccess)
      cudaEventDestroy(event), check(status, "cudaEventRecord");
  }
  ~Mark() { cudaEventDestroy(event); }
  Mark(const Mark&) = delete;
  cudaEvent_t event = nullptr;
};
}  // namespace

double seconds_of(const Graph& g, void* stream) {
  const Mark from(stream);
  if (g.executable) launch(g, stream);
  const Mark to(stream);
  check(cudaEventSynchronize(to.event), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from.event, to.event), "cudaEventElapsedTime");
  return 1e-3 * double(milliseconds);
}

void launch(const Graph& g, void* stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(g.executable.get()), stream_of(stream)),
        "cudaGraphLaunch");
}

}  // namespace skein::cuda
