// A Worker of optim/strategy.h whose oracle is a model and the batch at hand.
#include "apps/embed/learner.h"

#include "engine/clip.h"
#include "engine/ops.h"
#include "engine/tape.h"
#include "optim/consensus.h"

namespace skein {

struct Learner::State {
  State(std::unique_ptr<nn::Module> m, comm::Communicator& c, LearnerOptions options)
      : o(std::move(options)),
        peers(c),
        model(std::move(m)),
        flat(lay_out()),
        params(model->params()),
        slicer(flat, int64_t(4) << 20),
        rule(optim::sgd(flat.x, {.momentum = o.momentum,
                                 .weight_decay = o.weight_decay,
                                 .nesterov = o.nesterov,
                                 .decayed = flat.decayed})),
        strategy(optim::make_strategy(o.algorithm, with_seed(), c.size())),
        me{.x = flat.x,
           .g = flat.g,
           .buffers = flat.buffers,
           .rule = *rule,
           .lr = o.lr,
           .comm = c,
           .oracle = {}} {
    me.oracle = [this](const optim::GradReady& ready) { return gradient(ready); };
    strategy->start(me);
  }

  nn::Flat lay_out() {
    nn::Flat f = nn::flatten(*model, o.device.is_cuda() ? allocator(o.device) : peers.allocator());
    nn::initialize(*model, o.seed);
    return f;
  }
  optim::Options with_seed() const {
    optim::Options all = o.flags;
    all.set("seed", all.word("seed", std::to_string(o.seed)));
    return all;
  }

  Tensor gradient(const optim::GradReady& ready) {
    const RandomScope random(o.seed, uint64_t(k), uint32_t(peers.rank()));
    Tape tape;
    for (nn::Param* p : params) tape.watch(p->value, p->grad);
    const Tensor loss = cross_entropy(model->forward(images), labels, o.label_smoothing);
    const GradReady slices = ready ? slicer.start(ready) : GradReady();
    tape.backward(loss, [&](const Tensor& grad) {
      if (slices) slices(grad);
      peers.progress();  // what is under way moves on meanwhile
    });
    if (ready) slicer.finish();
    if (!ready && longest > 0) clip_by_norm(flat.g, longest);
    return loss;
  }

  const LearnerOptions o;
  const double longest = o.flags.number("clip-norm", 0);
  comm::Communicator& peers;
  const std::unique_ptr<nn::Module> model;
  nn::Flat flat;
  const std::vector<nn::Param*> params;
  nn::Slicer slicer;
  const std::unique_ptr<optim::Rule> rule;
  const std::unique_ptr<optim::Strategy> strategy;
  optim::Worker me;
  Tensor images, labels;  // of the step at hand
  int64_t k = 0;
};

Learner::Learner(std::unique_ptr<nn::Module> model, comm::Communicator& c, LearnerOptions o)
    : state_(std::make_unique<State>(std::move(model), c, std::move(o))) {}
Learner::~Learner() = default;

Tensor Learner::step(const Tensor& images, const Tensor& labels) {
  State& s = *state_;
  CHECK(images && labels && images.dim(0) == labels.size(), "so many images, so many labels");
  s.images = images, s.labels = labels;
  s.me.samples = labels.size();
  s.me.global_samples = labels.size() * s.peers.size();
  return s.strategy->iterate(s.me, s.k++);
}

void Learner::set_rate(float lr) { state_->me.lr = lr; }

double Learner::finish() {
  State& s = *state_;
  s.strategy->settle(s.me);
  const Tensor own = s.flat.x.clone(), model = Tensor(own.shape(), kF32, own.device());
  s.strategy->finish(s.me);
  s.strategy->evaluated(s.me, model);
  const double apart = optim::consensus_distance(s.peers, own, model, s.flat.count);
  copy(s.flat.x, model);
  if (s.flat.buffers && s.flat.buffers.size() > 0) {
    const Tensor statistics = s.flat.buffers.clone();
    optim::consensus(s.peers, statistics, s.flat.buffers);
  }
  return apart;
}

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
