// The quadratic synchronization rule: local SGD whose rounds grow as the rate falls.  Gu et al., ICLR 2024.
//
//   tau = max(tau_base, floor((c / eta)^2)), eta of the round's first step; at most --tau-max, by default an
//   epoch. As in the authors' code, rounds that begin during the warm-up have tau_base steps, whatever its
//   small rates would say, and the last round ends with the run.
#include <cmath>

#include "engine/vectors/vec.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class Qsr final : public Periodic {
 public:
  explicit Qsr(const Options& o)
      : Periodic(o),
        longest_(longest(o)),
        warmup_(o.integer("warmup-steps", 0)),
        last_(o.integer("total-steps", 0) - 1),
        c_(o.number("qsr-c", 0, 0)) {}

  Tensor iterate(Worker& me, int64_t k) override {
    const int64_t tau = done_ == 0 ? length(k, me.lr) : tau_;
    const bool ends = done_ + 1 >= tau || k == last_;
    const Tensor loss = me.gradient();
    const Tensor mean = round_.step_of(me, ends);  // x_i <- x_i - eta u_i
    if (mean) copy(me.x, mean);                    // x_i <- mean x
    tau_ = tau, done_ = ends ? 0 : done_ + 1;
    return loss;
  }

  Shared shared() override {
    return {.is = [this](int64_t) { return done_ == 0; }, .arrived = {}};
  }
  void visit(Archive& a) override { a("tau", tau_), a("done", done_), Periodic::visit(a); }

 private:
  int64_t longest(const Options& o) const {
    const int64_t epoch = o.integer("steps-per-epoch", int64_t(1) << 62), said = o.integer("tau-max", 0);
    if (said == 0) return std::max(round_.tau(), epoch);
    if (said >= round_.tau()) return said;
    throw BadOption(text("--tau-max ", said, ": allowed is --tau or more, which is ", round_.tau(),
                         ", or 0 for an epoch"));
  }
  // The length of the round that begins with step k.
  int64_t length(int64_t k, double eta) const {
    if (c_ == 0 || k < warmup_) return round_.tau();
    const double ratio = c_ / eta;                              // eta = 0: infinite
    const double tau = std::floor(ratio * ratio * (1 + 1e-9));  // (0.2 / 0.1)^2 is 4
    return tau < double(longest_) ? std::max(round_.tau(), int64_t(tau)) : longest_;
  }

  const int64_t longest_, warmup_, last_;  // round; steps of the warm-up; number of the run's last step
  const double c_;
  int64_t tau_ = 0, done_ = 0;  // of this round: its length, and steps behind it
};

}  // namespace

std::unique_ptr<Strategy> make_qsr(const Options& o, int) { return std::make_unique<Qsr>(o); }

}  // namespace skein::optim
