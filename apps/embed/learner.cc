// A VectorWorker whose oracle differentiates a model at the current batch.
#include "apps/embed/learner.h"

#include "nn/oracle.h"
#include "nn/rates.h"

namespace skein {

struct Learner::State {
  State(std::unique_ptr<nn::Module> m, comm::Communicator& c, const LearnerOptions& options)
      : o(options),
        peers(c),
        model(std::move(m)),
        flat(lay_out()),
        oracle(*model, flat,
               {.clip_norm = o.flags.number("clip-norm", 0), .between = [&c] { c.progress(); }}),
        worker({flat.x, flat.g, flat.buffers, flat.decayed, flat.count, nn::segments_of(flat)}, c,
               {.algorithm = o.algorithm,
                .optimizer = o.optimizer,
                .lr = o.lr,
                .momentum = o.momentum,
                .weight_decay = o.weight_decay,
                .nesterov = o.nesterov,
                .seed = o.seed,
                .flags = o.flags}) {}

  nn::Flat lay_out() {
    nn::Flat f = nn::flatten(*model, o.device.is_cuda() ? allocator(o.device) : peers.allocator());
    nn::initialize(*model, o.seed);
    return f;
  }

  Tensor gradient(const Tensor& images, const Tensor& labels, const optim::Slices& slices) {
    const RandomScope random(o.seed, uint64_t(worker.steps()), uint32_t(peers.rank()));
    const auto forward = [&](int64_t) {
      return cross_entropy(model->forward(images), labels, o.label_smoothing);
    };
    const Tensor loss = oracle.gradient(1, forward, slices.ready);
    if (slices) slices.complete(), oracle.judge();
    return loss;
  }

  const LearnerOptions o;
  comm::Communicator& peers;
  const std::unique_ptr<nn::Module> model;
  nn::Flat flat;
  nn::Oracle oracle;
  VectorWorker worker;
};

Learner::Learner(std::unique_ptr<nn::Module> model, comm::Communicator& c, LearnerOptions o)
    : state_(std::make_unique<State>(std::move(model), c, std::move(o))) {}
Learner::~Learner() = default;

Tensor Learner::step(const Tensor& images, const Tensor& labels) {
  State& s = *state_;
  CHECK(images && labels && images.dim(0) == labels.size(), "so many images, so many labels");
  return s.worker.step([&](const optim::Slices& slices) { return s.gradient(images, labels, slices); });
}

void Learner::set_rate(float lr) { state_->worker.set_rate(lr); }
double Learner::finish() { return state_->worker.finish(); }

Tensor Learner::forward(const Tensor& images) {
  const NoTape off;
  state_->model->set_training(false);
  const Tensor y = state_->model->forward(images);
  state_->model->set_training(true);
  return y;
}
nn::Module& Learner::model() { return *state_->model; }
const Tensor& Learner::parameters() const { return state_->flat.x; }

}  // namespace skein
