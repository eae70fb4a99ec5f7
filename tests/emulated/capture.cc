// Capture of streams into graphs, and their replay, with CUDA's refusals.
#include <algorithm>
#include <utility>

#include "tests/emulated/state.h"

namespace skein::emulated {
namespace {
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
}

bool forbidden(bool waits) {
  if (!waits && mode_of_thread == cudaStreamCaptureModeRelaxed) return false;
  const auto& all = gpu().captures;
  const auto at = std::find_if(all.begin(), all.end(), [waits](const auto& c) {
    return c->thread == std::this_thread::get_id() && (waits || !c->relaxed);
  });
  if (at == all.end()) return false;
  (*at)->broken = true;
  return true;
}

}  // namespace skein::emulated

using namespace skein::emulated;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  const Lock lock(gpu().mutex);
  Stream& mine = stream_at(s);
  if (mine.capture) return said(cudaErrorIllegalState);
  mine.capture = std::make_shared<Capture>();
  mine.capture->origin = &mine;
  mine.capture->thread = std::this_thread::get_id();
  mine.capture->relaxed = mode == cudaStreamCaptureModeRelaxed;
  gpu().captures.push_back(mine.capture);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  const Lock lock(gpu().mutex);
  const auto& c = stream_at(s).capture;
  *status = !c          ? cudaStreamCaptureStatusNone
            : c->broken ? cudaStreamCaptureStatusInvalidated
                        : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  const Lock lock(gpu().mutex);
  *graph = nullptr;
  const std::shared_ptr<Capture> c = stream_at(s).capture;
  if (!c) return said(cudaErrorIllegalState);
  if (c->origin != &stream_at(s)) return said(cudaErrorStreamCaptureUnmatched);
  bool loose = false;
  for (auto& [key, other] : gpu().streams) {
    if (other->capture != c) continue;
    loose = loose || other->loose;
    other->capture = nullptr, other->loose = false;
  }
  std::erase(gpu().captures, c);
  if (c->broken) return said(cudaErrorStreamCaptureInvalidated);
  if (loose) return said(cudaErrorStreamCaptureUnjoined);
  *graph = reinterpret_cast<cudaGraph_t>(new std::vector<Piece>(std::move(c->pieces)));
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t*, size_t* n) {
  *n = reinterpret_cast<std::vector<Piece>*>(g)->size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete reinterpret_cast<std::vector<Piece>*>(g);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  using Shared = std::shared_ptr<std::vector<Piece>>;
  *e = reinterpret_cast<cudaGraphExec_t>(
      new Shared(std::make_shared<std::vector<Piece>>(*reinterpret_cast<std::vector<Piece>*>(g))));
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
  const Lock lock(gpu().mutex);
  if (stream_at(s).capture) fault("a graph is launched on a stream that is captured");
  enqueue(s, "graph", [pieces = *reinterpret_cast<std::shared_ptr<std::vector<Piece>>*>(e)] {
    for (const Piece& p : *pieces) p.work();
  });
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  delete reinterpret_cast<std::shared_ptr<std::vector<Piece>>*>(e);
  return cudaSuccess;
}

}  // extern "C"
