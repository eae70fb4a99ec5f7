// Learner: one worker's model, rule and algorithm, for programs that have batches of their own.
#pragma once
#include <memory>
#include <string>

#include "apps/embed/vector_worker.h"
#include "nn/module.h"

namespace skein {

struct LearnerOptions {
  std::string algorithm = "sgp";  // this and what follows as in WorkerOptions
  std::string optimizer = "sgd";
  float lr = 0.1f, momentum = 0.9f, weight_decay = 0;
  bool nesterov = true;
  float label_smoothing = 0;
  uint64_t seed = 1;  // also of the initial weights and of dropout
  optim::Options flags = {};
  Device device = kCpu;
};

// Each worker makes one, with the same model and options, and calls the same member functions in the same
// order; it belongs to its worker's thread. Throws BadOption (no such algorithm, or not with so many
// workers), and in step() what communication throws: comm::PeerLost, comm::Timeout. After that the parameters
// are those of the last whole step, unless the algorithm is asynchronous.
class Learner {
 public:
  // Initializes the model from the seed, so that all workers start alike. The communicator must outlive it.
  Learner(std::unique_ptr<nn::Module> model, comm::Communicator&, LearnerOptions = {});
  ~Learner();

  // One step of the algorithm. images: [N,H,W,C] as the model wants them; labels: i32 [N], negative ones do
  // not count. Every worker gives the same N. The mean loss of these images before the step; item() reads it.
  Tensor step(const Tensor& images, const Tensor& labels);
  void set_rate(float lr);
  // After the last step, once: all workers now have the same model, bit for bit, the mean of theirs
  // or whatever the algorithm calls its result. Returns how far apart they were: sqrt(mean |x_i -
  // mean|^2 / parameters).
  double finish();

  Tensor forward(const Tensor& images);  // of the model as it is, for evaluation: nothing is learned
  nn::Module& model();
  const Tensor& parameters() const;  // one flat vector, whose windows the model's parameters are

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace skein
