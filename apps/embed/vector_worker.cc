// A Worker of optim/strategy.h that gets its oracle with each step.
#include "apps/embed/vector_worker.h"

#include <algorithm>
#include <utility>

#include "apps/embed/calls.h"
#include "comm/membership/council.h"
#include "optim/consensus.h"
#include "optim/uphill.h"
#include "optim/whole_step.h"

namespace skein {

namespace {

optim::Options of_algorithm(const WorkerOptions& o) {
  optim::Options all = o.flags;
  all.set("seed", all.word("seed", std::to_string(o.seed)));
  all.set("optimizer", o.optimizer);
  return all;
}

optim::Options of_optimizer(const WorkerOptions& o) {
  optim::Options all = o.flags;
  all.set("momentum", text(o.momentum));
  all.set("nesterov", o.nesterov ? "true" : "false");
  return all;
}

Segments segments_of(const WorkerVectors& v) {
  const int64_t n = v.x.size(), front = v.decayed < 0 ? n : v.decayed;
  if (v.segments.size() > 0) return v.segments;
  if (front == 0 || front == n) return Segments::one(v.x, front == n);
  CHECK(front % Segments::kBlock == 0, "decaying elements are a multiple of", Segments::kBlock, "not", front);
  return {{{.end = front, .columns = front, .decay = 1}, {.begin = front, .end = n, .columns = n - front}},
          v.x.device()};
}

// Without segments, SGD may decay any number of elements at the front.
std::unique_ptr<optim::Rule> rule_of(const WorkerVectors& v, const WorkerOptions& o) {
  if (o.optimizer == "sgd" && v.segments.size() == 0)
    return optim::sgd(v.x, {.momentum = o.momentum,
                            .weight_decay = o.weight_decay,
                            .nesterov = o.nesterov,
                            .decayed = v.decayed < 0 ? v.x.size() : v.decayed});
  return optim::make_rule(o.optimizer, of_optimizer(o),
                          {.like = v.x, .segments = segments_of(v), .weight_decay = o.weight_decay});
}

// A change of membership may interrupt the step of a single worker, and find two workers a step apart.
int states_kept(const WorkerOptions& o, int workers, const comm::Council* council) {
  if (!council && !o.whole_steps) return 0;
  const int kept = optim::states_kept(optim::strategy_row(o.algorithm), workers);
  return council ? std::max(2, kept) : std::min(1, kept);
}

Tensor vector(Tensor x, const char* what) {
  CHECK(x && x.rank() == 1 && x.dtype() == kF32, what, "are one vector of f32");
  return x;
}

}  // namespace

struct VectorWorker::State {
  State(const WorkerVectors& v, comm::Communicator& c, const WorkerOptions& o, comm::Council* chooser)
      : peers(c),
        council(chooser),
        x(vector(v.x, "parameters")),
        g(v.g ? vector(v.g, "gradients") : Tensor(x.shape(), kF32, x.device())),
        buffers(v.buffers ? vector(v.buffers, "buffers") : Tensor({0})),
        count(v.count < 0 ? x.size() : v.count),
        rule(rule_of(v, o)),
        uphill(rule->ascent() > 0 ? std::make_unique<optim::Uphill>(x, g, buffers, rule->ascent()) : nullptr),
        strategy(optim::make_strategy(o.algorithm, of_algorithm(o), c.size())),
        me{.x = x,
           .g = g,
           .buffers = buffers,
           .rule = *rule,
           .lr = o.lr,
           .comm = c,
           .share = 1.0 / c.size(),
           .oracle = [this](const optim::Slices& slices) { return gradient(slices); }},
        steps(states_kept(o, c.size(), chooser), [this](Archive& a) { visit(a); }) {
    strategy->start(me);
  }

  Tensor gradient(const optim::Slices& slices) {
    if (!uphill) return differentiate(slices);
    const Tensor loss = differentiate({});
    uphill->take([&] { differentiate(slices); });
    return loss;
  }

  // What the oracle leaves out is done here, as it would otherwise leave each worker with its own gradient.
  Tensor differentiate(const optim::Slices& slices) {
    if (!slices) return (*oracle)({});
    int64_t handed_out = 0;
    bool complete = false;
    const auto ready = [&](const Tensor& slice) {
      handed_out += slice.size();
      slices.ready(slice);
    };
    const auto wait = [&] {
      slices.complete();
      complete = true;
    };
    const Tensor loss = (*oracle)({ready, wait});
    if (handed_out == 0) ready(g);
    CHECK(handed_out == g.size(), "slices are the whole gradient or none of it:", handed_out, g.size());
    if (!complete) wait();
    return loss;
  }

  // Runs what is no step, but changes the state as a step does.
  void between_steps(const std::function<void()>& f) { council ? steps.run(k, f) : f(); }

  Tensor take_step() {
    Tensor loss;
    steps.run(k, [&] {
      loss = strategy->iterate(me, k);
      if (council) council->complete_step(k + 1, steps.oldest(k));
    });
    ++k;
    return loss;
  }

  // Everything that a step changes.
  void visit(Archive& a) {
    a("x", x);
    a("buffers", buffers);
    Under r(a, "rule."), s(a, "strategy.");
    rule->visit(r), strategy->visit(s);
  }

  // Collective, after settle().
  void write_model() {
    const Tensor model(x.shape(), kF32, x.device());
    strategy->write_model(me, model);
    const Tensor beside(x.shape(), kF32, x.device());
    if (rule->evaluated_beside(beside)) {
      peers.mean(beside).wait();
      axpy(model, 1.f, beside);
    }
    copy(x, model);
    if (buffers.size() == 0) return;
    own_buffers = buffers.clone();
    optim::consensus(peers, own_buffers, buffers);
  }

  comm::Communicator& peers;
  comm::Council* const council;
  Tensor x, g, buffers;
  const int64_t count;
  const std::unique_ptr<optim::Rule> rule;
  const std::unique_ptr<optim::Uphill> uphill;  // null: gradients are taken at x
  const std::unique_ptr<optim::Strategy> strategy;
  optim::Worker me;
  optim::WholeStep steps;
  const Oracle* oracle = nullptr;  // of the step at hand
  int64_t k = 0;
  Tensor own_x, own_buffers;  // while the model is shown
};

VectorWorker::VectorWorker(const WorkerVectors& v, comm::Communicator& c, const WorkerOptions& o,
                           comm::Council* council)
    : state_(std::make_unique<State>(v, c, o, council)) {}
VectorWorker::~VectorWorker() = default;

Tensor VectorWorker::step(const Oracle& oracle) {
  State& s = *state_;
  demand(!s.own_x, "hide_model() comes before the next step");
  s.oracle = &oracle;
  return s.take_step();
}

void VectorWorker::set_rate(float lr) { state_->me.lr = lr; }
int64_t VectorWorker::steps() const { return state_->k; }

void VectorWorker::show_model() {
  State& s = *state_;
  demand(!s.own_x, "the model is shown already");
  s.between_steps([&] {
    s.strategy->settle(s.me);
    s.own_x = s.x.clone();
    s.write_model();
  });
}

void VectorWorker::hide_model() {
  State& s = *state_;
  demand(bool(s.own_x), "show_model() comes first");
  copy(s.x, s.own_x);
  if (s.own_buffers) copy(s.buffers, s.own_buffers);
  s.own_x = s.own_buffers = Tensor();
}

void VectorWorker::settle() {
  demand(!state_->own_x, "hide_model() comes before a checkpoint");
  state_->between_steps([this] { state_->strategy->settle(state_->me); });
}

void VectorWorker::visit(Archive& a) {
  state_->visit(a);
  a("steps", state_->k);
}

std::optional<optim::Snapshot> VectorWorker::state_before(int64_t k) {
  State& s = *state_;
  if (s.own_x) hide_model();
  if (s.steps.knows(k)) s.steps.go_back(k), s.k = k;
  if (s.k != k) return {};
  optim::Snapshot state;
  state.take([&s](Archive& a) { s.visit(a); });
  return state;
}

void VectorWorker::visit_state(Archive& a) { state_->visit(a); }
void VectorWorker::go_on_from(int64_t k) { state_->k = k; }

double VectorWorker::finish() {
  State& s = *state_;
  demand(!s.own_x, "hide_model() comes before the end");
  double distance = 0;
  s.between_steps([&] {
    s.strategy->settle(s.me);
    const Tensor own = s.x.clone();
    s.strategy->finish(s.me);
    s.write_model();
    s.own_buffers = Tensor();
    distance = optim::consensus_distance(s.peers, own, s.x, s.count);
  });
  return distance;
}

const Tensor& VectorWorker::parameters() const { return state_->x; }
const Tensor& VectorWorker::gradient() const { return state_->g; }

}  // namespace skein
