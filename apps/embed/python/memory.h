// The vectors of a worker as Python sees them: on the host or on one GPU, exchanged by DLPack and the buffer
// protocol, without a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <vector>

#include "apps/embed/job/job.h"
#include "apps/embed/vector_worker.h"

namespace skein::apps {

using View = nanobind::ndarray<float, nanobind::c_contig>;  // on any device
using Window = nanobind::ndarray<nanobind::array_api, float, nanobind::c_contig>;

// The vectors of a worker: its parameters (in the caller's array, if there is one), their gradient, and
// buffers. On a GPU the worker and its caller work in different streams: before a call the worker waits for
// the caller's by wait_for(), after it the caller need not wait for the worker's, because finish() has.
class Memory {
 public:
  // device: the index of a GPU; negative: the host. With x it is where x lies.
  Memory(const EmbeddedJob&, int64_t parameters, int64_t buffers, std::optional<View> x, int device);

  WorkerVectors vectors() const { return {.x = x_, .g = g_, .buffers = buffers_}; }
  const Tensor& x() const { return x_; }
  const Tensor& g() const { return g_; }
  const Tensor& buffers() const { return buffers_; }
  void clear_gradient();
  void wait_for(uintptr_t stream) const;  // the handle of a CUDA stream
  void finish() const;

 private:
  const std::optional<View> callers_;  // keeps its memory
  const Device device_;
  const Tensor x_, g_, buffers_;
};

// Adds to the module: Memory; average(job, array); copy_into(to, from); and for arrays on GPUs
// trouble_with(device), stream(device) and array_at(address, shape, stream, owner).
void define_memory(nanobind::module_&);

}  // namespace skein::apps
