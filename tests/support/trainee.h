// A small problem for strategies to work on, and one rank's training state.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"
#include "engine/random.h"
#include "engine/vectors/clip.h"
#include "engine/vectors/loss_scale.h"
#include "engine/vectors/primal.h"
#include "engine/vectors/vec.h"
#include "optim/served.h"
#include "optim/strategy.h"
#include "optim/whole_step.h"
#include "tests/engine/vectors/narrow_state.h"
#include "tests/support/numbers/difference.h"
#include "tests/support/snapshots.h"
#include "tests/support/world.h"

namespace skein::trainee {

using comm::in_local_world;
using comm::in_world;
using differences::largest_difference;

// Worker `id` of n wants x[i] = target + i / 16, with curvature from 0.5 to 1.5 over i, plus seeded noise:
// every gradient is a pure function of (id, step, x).
struct Problem {
  int64_t size = 37;
  float lr = 0.1f, momentum = 0, decay = 0, noise = 0, curvature_spread = 0;
  std::string optimizer = "sgd";
  std::string optimizer_flags = {};  // "--beta1 0.5"
  bool nesterov = false, zero_gradient = false, uneven_batches = false;
  double pause = 0;        // seconds that a gradient takes at least
  float start_spread = 0;  // models start this far apart
  bool narrow = false;     // x keeps a bf16 copy, which is then looked at
  Device device = kCpu;    // where the vectors lie; gradients are made on the host
  std::string loss_scale = "none";
  double clip_norm = 0;  // 0: gradients are not clipped
  // What is added to element 3 of the scaled gradient of worker `id` at a step.
  std::function<float(int id, int64_t step)> fault = [](int, int64_t) { return 0.f; };
  std::function<int(int)> id = [](int rank) { return rank; };  // which worker a rank plays
};

inline Tensor on_host(const Tensor& x) {
  const Tensor host = x.to(kCpu);
  if (!x.device().is_host()) current_stream(x.device()).sync();
  return host;
}

inline optim::Options options(std::initializer_list<std::pair<std::string, std::string>> list) {
  optim::Options o;
  for (const auto& [key, value] : list) o.set(key, value);
  return o;
}

// From a command line: "--tau 2 --beta 0.5".
inline optim::Options flags_of(const std::string& line) {
  optim::Options o;
  std::istringstream words(line);
  for (std::string flag, value; words >> flag >> value;) o.set(flag.substr(2), value);
  return o;
}

// One rank's whole training state; in a world of one where no communicator is given.
class Trainee {
 public:
  Trainee(const Problem& p, const std::string& algorithm, const optim::Options& options)
      : Trainee(p, algorithm, options, std::make_unique<comm::WorldOfOne>()) {}
  Trainee(const Problem& p, const std::string& algorithm, const optim::Options& options,
          comm::Communicator& c)
      : Trainee(p, algorithm, options, c, c) {}
  Trainee(const Problem& p, const std::string& algorithm, const optim::Options& options,
          comm::Communicator& c, comm::Communicator& hub)
      : problem_(p),
        id_(p.id(c.rank())),
        world_(c.size()),
        x(p.device.is_host() ? Tensor({p.size}, kF32, c.allocator()) : Tensor({p.size}, kF32, p.device)),
        g(Tensor::zeros({p.size}, kF32, p.device)),
        buffers(Tensor::zeros({3}, kF32, p.device)),
        scale(make_loss_scale(p.loss_scale, kF32, p.device)),
        rule(rule_of(p, x, scale.get())),
        strategy(optim::make_strategy(algorithm, options, world_)),
        worker{x, g, buffers, *rule, p.lr, c, 1.0 / world_, {}},
        steps(optim::states_kept(optim::strategy_row(algorithm), world_), [this](Archive& a) { visit(a); }) {
    const Tensor begin({p.size});
    for (int64_t i = 0; i < p.size; ++i)
      begin.data<float>()[i] = p.start_spread * float(id_) * float(i % 5 - 2);
    copy_bytes(x, begin);
    if (p.narrow) keep_narrow(x, kBF16);
    fill(buffers, float(id_));
    if (p.uneven_batches) {
      int all = 0;
      for (int r = 0; r < world_; ++r) all += 1 + r % 3;
      worker.share = double(1 + id_ % 3) / all;
    }
    if (rule->ascent() > 0) ascent_ = std::make_unique<Ascent>(x, rule->ascent());
    worker.oracle = [this](const optim::Slices& slices) {
      if (!ascent_) return gradient(slices);
      const Tensor loss = gradient({});
      ascent_->up(g);
      gradient(slices);
      ascent_->down();
      return loss;
    };
    if (&hub != &c) optim::with_server(*strategy).reach(hub);
    strategy->start(worker);
  }
  Trainee(const Trainee&) = delete;

  void step(int64_t k) {
    k_ = k;
    steps.run(k, [&] { strategy->iterate(worker, k); });
    if (problem_.narrow && narrow_is_current(x)) expect_narrow(), ++current;
  }
  int64_t current = 0;  // steps after which x and its copy agreed without a pass of their own
  void visit(Archive& a) {
    a("x", x), a("buffers", buffers);
    Under r(a, "rule."), s(a, "strategy."), l(a, "loss_scale.");
    rule->visit(r), strategy->visit(s);
    if (scale) scale->visit(l);
  }

 private:
  Trainee(const Problem& p, const std::string& algorithm, const optim::Options& options,
          std::unique_ptr<comm::WorldOfOne> alone)
      : Trainee(p, algorithm, options, *alone) {
    alone_ = std::move(alone);
  }

  static std::unique_ptr<optim::Rule> rule_of(const Problem& p, const Tensor& x, const LossScale* scale) {
    optim::Options o = flags_of(p.optimizer_flags);
    o.set("momentum", text(p.momentum)), o.set("nesterov", p.nesterov ? "on" : "off");
    const Segments::Segment one{.end = x.size(), .columns = x.size(), .hidden = true, .decay = 1};
    return optim::make_rule(p.optimizer, o,
                            {.like = x,
                             .segments = {{one}, x.device()},
                             .weight_decay = p.decay,
                             .on = scale ? scale->on() : nullptr});
  }

  Tensor gradient(const optim::Slices& slices) {
    const TrustNarrow trust(x);
    if (problem_.narrow) expect_narrow();
    const Draw draw{7, Purpose::kTest, uint64_t(k_), uint32_t(id_)};
    double loss = 0;
    const Tensor at = on_host(x), slope = g.device().is_host() ? g : Tensor(g.shape());
    for (int64_t i = 0; i < problem_.size; ++i) {
      const float curvature = 1 + problem_.curvature_spread * (float(i) / float(problem_.size) - 0.5f);
      const float off = at.in<float>()[i] - float(id_ + 1) - float(i) / 16;
      slope.data<float>()[i] =
          problem_.zero_gradient ? 0 : curvature * off + problem_.noise * (draw.unit(i) - 0.5f);
      loss += 0.5 * curvature * off * off;
    }
    if (scale) skein::scale(slope, scale->seed());
    slope.data<float>()[3] += problem_.fault(id_, k_);
    copy_bytes(g, slope);
    if (problem_.pause > 0) std::this_thread::sleep_for(std::chrono::duration<double>(problem_.pause));
    const int64_t cut = problem_.size / 3;  // from the end, as backward does
    if (slices) slices.ready(g.view({problem_.size - cut}, cut));
    if (slices && cut > 0) slices.ready(g.view({cut}, 0));
    if (slices) slices.complete();
    if (scale) scale->judge(g);
    if (problem_.clip_norm > 0) clip_by_norm(g, problem_.clip_norm);
    return Tensor::of<float>({1}, {float(loss)}).to(x.device());
  }

  // Element by element the copy is x, rounded.
  void expect_narrow() const {
    const TrustNarrow trust(x);
    const Tensor low = on_host(narrow_of(x, kBF16)), want(x.shape(), kBF16), is = on_host(x);
    for (int64_t i = 0; i < x.size(); ++i) want.data<bf16>()[i] = bf16(is.in<float>()[i]);
    CHECK(std::memcmp(low.raw(), want.raw(), size_t(want.bytes())) == 0, "a copy that is not of x");
  }

  const Problem problem_;
  const int id_, world_;
  std::unique_ptr<comm::WorldOfOne> alone_;
  std::unique_ptr<Ascent> ascent_;
  int64_t k_ = 0;

 public:
  Tensor x, g, buffers;
  std::unique_ptr<LossScale> scale;
  std::unique_ptr<optim::Rule> rule;
  std::unique_ptr<optim::Strategy> strategy;
  optim::Worker worker;
  optim::WholeStep steps;
};

inline std::vector<float> values(const Tensor& t) {
  const Tensor host = on_host(t);
  return {host.in<float>(), host.in<float>() + host.size()};
}

// models[step][rank] = x after that many steps, 0 the start; after the last, when all have met.
using History = std::vector<std::vector<std::vector<float>>>;
inline void train_one(History& h, const Problem& p, const std::string& algorithm,
                      const optim::Options& options, comm::Communicator& c) {
  Trainee t(p, algorithm, options, c);
  const int64_t steps = int64_t(h.size()) - 1;
  for (int64_t k = 0; k <= steps; ++k) {
    h[size_t(k)][size_t(c.rank())] = values(t.x);
    if (k < steps) t.step(k);
  }
  t.strategy->settle(t.worker);
  h.back()[size_t(c.rank())] = values(t.x);
}
inline History train(const Problem& p, const std::string& algorithm, const optim::Options& options,
                     std::vector<std::unique_ptr<comm::Transport>> world, int64_t steps) {
  History h(size_t(steps) + 1, std::vector<std::vector<float>>(world.size()));
  in_world(world, [&](comm::Communicator& c) { train_one(h, p, algorithm, options, c); });
  return h;
}
inline History train(const Problem& p, const std::string& algorithm, const optim::Options& options, int n,
                     int64_t steps) {
  return train(p, algorithm, options, comm::local_world(n), steps);
}

}  // namespace skein::trainee
