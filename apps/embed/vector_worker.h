// VectorWorker: one worker's parameters, rule and algorithm, for programs that compute gradients
// of their own.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator/communicator.h"
#include "engine/archive.h"
#include "optim/snapshot.h"
#include "optim/strategy.h"

namespace skein::comm {
class Council;
}

namespace skein {

struct WorkerOptions {
  std::string algorithm = "sgp";  // train_imagenet --list algorithms
  std::string optimizer = "sgd";  // train_imagenet --list optimizers
  float lr = 0.1f, momentum = 0.9f, weight_decay = 0;
  bool nesterov = true;
  uint64_t seed = 1;  // of what an algorithm draws, such as whom to ask
  // After an error in a step the parameters are those before it. false saves the copies, and they are lost.
  bool whole_steps = true;
  optim::Options flags =
      {};  // the algorithm's and the optimizer's own, as docs/flags.md names them, without dashes
};

// All are f32, in memory of the communicator's allocator() or of any other owner, and must live as long
// as the worker.
struct WorkerVectors {
  Tensor x;              // [n], the parameters; every worker has the same values
  Tensor g = {};         // [n], their gradient; empty: memory of its own
  Tensor buffers = {};   // [m], numbers that are averaged as well, such as running statistics; or empty
  int64_t decayed = -1;  // elements [0, decayed) decay; negative: all
  int64_t count = -1;    // of elements that are parameters and not padding; negative: all
  Segments segments =
      {};  // of x: what decays, at which rates, and which are matrices; none: as `decayed` says
};

// Every worker makes one with equal parameters and options, and calls its functions in the same order, from
// one thread. The constructor throws BadOption if there is no such algorithm, or not for so many workers.
// step() throws what communication throws: comm::PeerLost, comm::Timeout. After that the parameters are those
// of the last whole step, unless the algorithm is asynchronous.
class VectorWorker {
 public:
  // The communicator must outlive it, and so must the council that chooses the members of the next epoch, if
  // there is one. With it step() throws comm::EpochEnds where the membership changes, also after a step that
  // is taken back then.
  VectorWorker(const WorkerVectors&, comm::Communicator&, const WorkerOptions&, comm::Council* = nullptr);
  ~VectorWorker();
  VectorWorker(const VectorWorker&) = delete;

  // Fills gradient() with the gradient at parameters() and returns the loss, one element. SAM calls it twice
  // a step, for the same samples. If `Slices` is not empty, it may hand out slices of the gradient on the
  // way, the same ones at every step and together all of it; after complete() the gradient is the workers'
  // sum. Otherwise that is done when it returns.
  using Oracle = std::function<Tensor(const optim::Slices&)>;
  // One step of the algorithm. Returns the loss. If the oracle throws, the parameters are as they were
  // before, but the other workers wait for messages that this one has not sent, so it can only leave the job.
  Tensor step(const Oracle&);
  void set_rate(float lr);
  int64_t steps() const;  // that were taken

  // Between show_model() and hide_model() the parameters hold the algorithm's model, with the same bits on
  // all workers, and no step may be taken, nor a checkpoint. show_model() is collective and costs a copy of
  // the parameters while it lasts.
  void show_model();
  void hide_model();
  // visit() walks everything that the next step reads, to save or load it between two steps. settle() must be
  // called before; it is collective and returns when no messages are under way.
  void settle();
  void visit(Archive&);
  // The state before step k, to which this worker goes back; nothing if it has taken too many steps since.
  std::optional<optim::Snapshot> state_before(int64_t k);
  // Walks what state_before() copies, to load it into another worker, which then goes on from step k.
  void visit_state(Archive&);
  void go_on_from(int64_t k);
  // Call it once, after the last step: the parameters are that model from then on. Returns how far apart they
  // were: sqrt(mean |x_i - mean|^2 / count). Collective.
  double finish();

  const Tensor& parameters() const;  // f32 [n]
  const Tensor& gradient() const;    // f32 [n]

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skein
