// Muon: momentum, orthogonalized matrix by matrix.  Jordan et al., 2024, github.com/KellerJordan/Muon.
//
//   b   running mean of g, starts 0        beta    --muon-momentum
//   U   one hidden weight's direction as a matrix [out, everything else]
//   X   U with its singular values brought near 1
//
//   b <- beta b + (1 - beta) g,  U = (1 - beta) g + beta b,  X = NewtonSchulz(U / |U|)
//   x <- x - eta (sqrt(max(1, rows / columns)) X + lambda x)
//
// Norms, biases and the last layer, whose matrices mean something else, take AdamW's step at --adam-rate
// times the rate.
#include <algorithm>
#include <cmath>

#include "engine/orthogonal.h"
#include "engine/vectors/muon.h"
#include "engine/vectors/narrow.h"
#include "optim/rule/moments.h"

namespace skein::optim {
namespace {

// Neighboring segments that take one kind of step.
struct Stretch {
  int64_t begin = 0, end = 0;
  bool hidden = false;
  std::vector<Segments::Segment> segments;  // from 0
  Tensor of(const Tensor& x) const { return x.view({end - begin}, begin); }
};

std::vector<Stretch> stretches_of(const Segments& all) {
  std::vector<Stretch> found;
  for (Segments::Segment s : all.all()) {
    if (found.empty() || found.back().hidden != s.hidden) found.push_back({s.begin, s.begin, s.hidden, {}});
    found.back().end = s.end;
    s.begin -= found.back().begin, s.end -= found.back().begin;
    found.back().segments.push_back(s);
  }
  return found;
}

class Hidden {
 public:
  Hidden(const Stretch& s, const RuleTask& task, float beta, int steps)
      : at_(s),
        segments_(s.segments, task.like.device()),
        beta_(beta),
        steps_(steps),
        decay_(task.weight_decay),
        on_(task.on),
        b_(Tensor::zeros({s.end - s.begin}, kF32, task.like.device())),
        u_(b_.shape(), kF32, task.like.device()) {
    std::vector<float> scale;
    for (const Segments::Segment& one : s.segments)
      scale.push_back(std::sqrt(std::max(1.f, float(one.rows) / float(one.columns))));
    scale_ = segments_.numbers(scale);
  }
  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) const {
    muon_direction(b_, u_, at_.of(g), beta_, on_);
    normalize_segments(u_, segments_);
    for (const Segments::Segment& s : segments_.all())
      newton_schulz(u_.view({s.rows, s.columns}, s.begin), steps_);
    muon_step({.x = at_.of(x),
               .u = u_,
               .at = at_.of(at),
               .segments = segments_,
               .scale = scale_,
               .decay = decay_,
               .on = on_},
              lr);
  }
  void reset() { fill(b_, 0.f); }
  void visit(Archive& a) { a("b", b_); }

 private:
  const Stretch at_;
  const Segments segments_;
  const float beta_;
  const int steps_;
  const float decay_;
  const float* const on_;
  Tensor b_;
  const Tensor u_;  // scratch: directions
  Tensor scale_;
};

class Rest {
 public:
  Rest(const Stretch& s, const Options& o, const RuleTask& task)
      : at_(s),
        moments_(o, {at_.of(task.like), {s.segments, task.like.device()}, task.weight_decay, task.on},
                 1e-10) {}
  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) {
    adam_step(at_.of(x), moments_.next(at_.of(g), at_.of(at)), lr);
  }
  void reset() { moments_.reset(); }
  void visit(Archive& a) { moments_.visit(a); }

 private:
  const Stretch at_;
  Moments moments_;
};

class Muon final : public Rule {
 public:
  Muon(const Options& o, const RuleTask& task) : on_(task.on) {
    const double beta = o.number("muon-momentum", 0.95, 0, 0.99999), part = o.number("adam-rate", 0.1, 0);
    const int64_t steps = o.integer("muon-iterations", 5, 1);
    for (Stretch& s : stretches_of(task.segments)) {
      if (s.hidden) {
        hidden_.emplace_back(s, task, float(beta), int(steps));
        continue;
      }
      for (Segments::Segment& one : s.segments) one.rate *= float(part);
      rest_.emplace_back(s, o, task);
    }
  }

  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    for (const Hidden& h : hidden_) h.step(x, g, at, lr);
    for (Rest& r : rest_) r.step(x, g, at, lr);
    refresh_narrow(x);
  }
  const float* on() const override { return on_; }
  void reset() override {
    for (Hidden& h : hidden_) h.reset();
    for (Rest& r : rest_) r.reset();
  }
  void visit(Archive& a) override {
    for (size_t i = 0; i < hidden_.size(); ++i) {
      Under one(a, text("hidden", i, "."));
      hidden_[i].visit(one);
    }
    for (size_t i = 0; i < rest_.size(); ++i) {
      Under one(a, text("rest", i, "."));
      rest_[i].visit(one);
    }
  }

 private:
  const float* const on_;
  std::vector<Hidden> hidden_;
  std::vector<Rest> rest_;
};

}  // namespace

std::unique_ptr<Rule> make_muon_rule(const Options& o, const RuleTask& task) {
  return std::make_unique<Muon>(o, task);
}

}  // namespace skein::optim
