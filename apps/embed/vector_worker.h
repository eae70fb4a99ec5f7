// VectorWorker: one worker's parameters, rule and algorithm, for programs that compute gradients of their own.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "comm/communicator/communicator.h"
#include "engine/archive.h"
#include "optim/strategy.h"

namespace skein {

struct WorkerOptions {
  std::string algorithm = "sgp";  // train_imagenet --list algorithms
  std::string optimizer = "sgd";  // train_imagenet --list optimizers
  float lr = 0.1f, momentum = 0.9f, weight_decay = 0;
  bool nesterov = true;
  uint64_t seed = 1;  // of what an algorithm draws, such as whom to ask
  optim::Options flags =
      {};  // the algorithm's and the optimizer's own, as docs/flags.md names them, without dashes
};

// All f32, in memory of the communicator's allocator() or of anybody else, which must live as long as the worker.
struct WorkerVectors {
  Tensor x;              // [n], the parameters; every worker has the same values
  Tensor g = {};         // [n], their gradient; empty: memory of its own
  Tensor buffers = {};   // [m], numbers that are averaged as well, such as running statistics; or empty
  int64_t decayed = -1;  // elements [0, decayed) decay; negative: all
  int64_t count = -1;    // of elements that are parameters and not padding; negative: all
  Segments segments =
      {};  // of x: what decays, at which rates, and which are matrices; none: as `decayed` says
};

// Each worker makes one, over equal parameters and with equal options, and calls the same of its functions in the same
// order; it belongs to its worker's thread. Throws BadOption (no such algorithm, or not with so many workers), and in
// step() what communication throws: comm::PeerLost, comm::Timeout. After that the parameters are those of the last
// whole step, unless the algorithm is asynchronous.
class VectorWorker {
 public:
  // The communicator must outlive it.
  VectorWorker(const WorkerVectors&, comm::Communicator&, const WorkerOptions&);
  ~VectorWorker();
  VectorWorker(const VectorWorker&) = delete;

  // Fills gradient() with the gradient at parameters(), and returns the loss, one element. Optimizers that take it uphill
  // ask twice in a step, which must be for the same samples. It may hand out slices of it
  // on the way, if there is anybody to take them: the same slices at every step.
  using Oracle = std::function<Tensor(const optim::Slices&)>;
  // One step of the algorithm. Returns the loss. What the oracle throws leaves the parameters as they were before, but
  // the other workers wait for what this one has not sent: it can only leave them.
  Tensor step(const Oracle&);
  void set_rate(float lr);
  int64_t steps() const;  // that were taken

  // Between these the parameters are the model that the algorithm stands for, with the same bits on all workers, and no
  // step may be taken. show_model() is collective and costs a copy of the parameters while it lasts.
  void show_model();
  void hide_model();
  // Everything that the next step reads, to be saved or loaded between two steps. settle() comes first; it is collective
  // and returns when nothing is under way.
  void settle();
  void visit(Archive&);
  // After the last step, once: all workers now have that model for good. Returns how far apart they were:
  // sqrt(mean |x_i - mean|^2 / count). Collective.
  double finish();

  const Tensor& parameters() const;  // f32 [n]
  const Tensor& gradient() const;    // f32 [n]

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skein
