// Workers that commit their steps to a center and go on from what it has become meanwhile.
//   downpour   Dean et al., NeurIPS 2012             theta <- theta + delta
//   dynsgd     Jiang, Cui, Zhang & Yu, SIGMOD 2017   theta <- theta + delta / (s + 1)
//   agn        Hermans, 2017                         theta <- theta + delta / tau
// --max-delay R: a delta with s >= R is dropped, and its worker goes on from theta (Ringmaster ASGD:
// Maranjyan, Tyurin & Richtarik, ICML 2025, with tau = 1). --server-rule delayed-nesterov: the center has
// a momentum (optim/center/delayed_nesterov.h).
//
//   theta   the center          delta   a worker's tau local steps since its last pull
//   s       commits by others since that pull; the pull is the answer to the own commit
#include "engine/vectors/vec.h"
#include "optim/center/delayed_nesterov.h"
#include "optim/center/turns.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

enum class Weight { kOne, kStaleness, kPeriod };

class Downpour final : public Centered {
 public:
  Downpour(const Options& o, int world, Weight w)
      : Downpour(o, world, w, w == Weight::kOne ? delayed_nesterov(o, world) : std::nullopt) {}

  void start(Worker& me) override {
    delta_ = Tensor::zeros(me.x.shape(), kF32, me.x.device());
    Centered::start(me);
    pulled_ = me.x.clone();
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    if (round_.steps() == 1) {
      fill(delta_, 0.f);
      me.local_step(delta_);  // delta = -eta u itself
    } else {
      me.local_step(me.x);
      if (!round_.ends(k)) return loss;
      copy(delta_, me.x);
      axpy(delta_, -1.f, pulled_);  // delta = x - x_pulled
    }
    const comm::Message theta = turns_.exchange(delta_, version_);
    copy(me.x, beside(me.x, theta.payload));  // x <- theta
    copy(pulled_, me.x);
    version_ = int64_t(theta.weight);
    turns_.saw(pulled_, version_);
    return loss;
  }

  void visit(Archive& a) override { a("pulled", pulled_), a("version", version_), Centered::visit(a); }

 private:
  Downpour(const Options& o, int world, Weight w, std::optional<DelayedNesterov> rule)
      : Centered(o, world, rule ? DelayedNesterov::kKept : 0),
        round_(o, 1),
        weight_(w),
        rule_(std::move(rule)),
        max_delay_(w == Weight::kOne ? o.integer("max-delay", 0, 0) : 0) {}

  Center::Column column() const override {
    return [w = weight_, tau = float(round_.steps()), r = max_delay_, rule = rule_](Turn& t) {
      const comm::Message delta = t.take();
      const int64_t s = t.version - int64_t(delta.weight);
      if (r > 0 && s >= r) {
        t.leave_as_it_is();
        return t.give(t.theta, t.version);
      }
      const float share = w == Weight::kStaleness ? 1 / float(s + 1) : w == Weight::kPeriod ? 1 / tau : 1;
      rule ? rule->commit(t, delta.payload) : axpy(t.theta, share, delta.payload);
      t.give(t.theta, t.version + 1);
    };
  }

  const Period round_;
  const Weight weight_;
  const std::optional<DelayedNesterov> rule_;  // none: the sum
  const int64_t max_delay_;                    // 0: none
  Tensor delta_, pulled_;
  int64_t version_ = 0;  // of the center, when it was pulled
};

}  // namespace

std::unique_ptr<Strategy> make_downpour(const Options& o, int world) {
  return std::make_unique<Downpour>(o, world, Weight::kOne);
}
std::unique_ptr<Strategy> make_dynsgd(const Options& o, int world) {
  return std::make_unique<Downpour>(o, world, Weight::kStaleness);
}
std::unique_ptr<Strategy> make_agn(const Options& o, int world) {
  return std::make_unique<Downpour>(o, world, Weight::kPeriod);
}

}  // namespace skein::optim
