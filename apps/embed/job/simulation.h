// Any algorithm with a caller's gradient in a simulated world, whose workers are threads of this process.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "apps/embed/job/job_worker.h"

namespace skein::apps {

// When the last worker has taken a step.
struct SimulatedMoment {
  int64_t step = 0;
  double seconds = 0, bytes = 0;  // of virtual time; sent by a worker so far, on average
  double loss = 0;                // mean of the workers' last ones
};

// Its functions are called by one thread at a time, not always by the same one. What they throw ends it.
struct SimulatedTask {
  Tensor start;       // f32 [n]: with which all workers begin
  std::string world;  // a world file (docs/simulation.md), or its text if it has more than one line
  int64_t steps = 0;  // of each worker
  int64_t every = 1;  // steps between two calls of `look`, which is also called after the last step
  JobWorkerOptions worker = {};
  int64_t count = -1;      // as in WorkerVectors
  Segments segments = {};  // as there
  // Writes to g the gradient of this worker at x for its step, counted from 0, and returns the loss. The
  // world file says how long that takes. SAM calls it twice a step.
  std::function<float(int rank, int64_t step, const Tensor& x, const Tensor& g)> gradient;
  // Sees the mean of the workers' parameters as they are at this moment. Takes no virtual time.
  std::function<void(const SimulatedMoment&, const Tensor& mean)> look = {};
};

struct SimulatedResult {
  int workers = 0;
  Tensor model;                           // of the algorithm
  std::map<std::string, double> figures;  // of a worker, on average; `seconds` and `apart` are of all
};

// The same numbers at each call. Throws BadFile and BadOption for world, algorithm and flags, what the
// functions throw, and PeerLost where a fault of the world takes a worker away.
SimulatedResult simulate(const SimulatedTask&);

}  // namespace skein::apps
