// A Worker of optim/strategy.h whose oracle is a model and the batch at hand.
#include "apps/embed/learner.h"

#include <algorithm>

#include "nn/oracle.h"
#include "optim/consensus.h"
#include "optim/whole_step.h"

namespace skein {

struct Learner::State {
  State(std::unique_ptr<nn::Module> m, comm::Communicator& c, LearnerOptions options)
      : o(std::move(options)),
        peers(c),
        model(std::move(m)),
        flat(lay_out()),
        oracle(*model, flat,
               {.clip_norm = o.flags.number("clip-norm", 0), .between = [&c] { c.progress(); }}),
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
           .share = 1.0 / c.size(),
           .oracle = [this](const optim::Slices& slices) { return gradient(slices); }},
        steps(std::min(1, optim::states_kept(optim::strategy_row(o.algorithm), c.size())),
              [this](Archive& a) { visit(a); }) {
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

  // All that a step changes.
  void visit(Archive& a) {
    a("x", flat.x);
    if (flat.buffers) a("buffers", flat.buffers);
    Under r(a, "rule."), s(a, "strategy.");
    rule->visit(r), strategy->visit(s);
  }

  Tensor gradient(const optim::Slices& slices) {
    const RandomScope random(o.seed, uint64_t(k), uint32_t(peers.rank()));
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
  const std::unique_ptr<optim::Rule> rule;
  const std::unique_ptr<optim::Strategy> strategy;
  optim::Worker me;
  optim::WholeStep steps;
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
  Tensor loss;
  s.steps.run(s.k, [&] { loss = s.strategy->iterate(s.me, s.k); });
  ++s.k;
  return loss;
}

void Learner::set_rate(float lr) { state_->me.lr = lr; }

double Learner::finish() {
  State& s = *state_;
  s.strategy->settle(s.me);
  const Tensor own = s.flat.x.clone(), model = Tensor(own.shape(), kF32, own.device());
  s.strategy->finish(s.me);
  s.strategy->write_model(s.me, model);
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
