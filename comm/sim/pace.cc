// Draws are pure functions of (seed, worker, step).
#include "comm/sim/pace.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/random.h"

namespace skein::comm::sim {

Pace::Pace(World& w, PacePlan p, uint64_t seed, int rank, int workers, double speed)
    : world_(w), plan_(std::move(p)), seed_(seed), rank_(rank), workers_(workers), speed_(speed) {
  CHECK(plan_.step >= 0 && speed > 0 && (plan_.law != PacePlan::Law::kTrace || !plan_.trace.empty()),
        plan_.step, speed);
}

void Pace::begin() {
  seconds_ = draw() / speed_;
  done_ = steps_ > 0 ? std::min(plan_.ahead / speed_, world_.now() - idle_since_) : 0;
  ++steps_;
}

void Pace::work(double share) {
  const double off = std::min(done_, share * seconds_), left = share * seconds_ - off;
  done_ -= off;
  spend(left);
}

void Pace::vectors(double bytes) {
  if (plan_.vector > 0) spend(bytes * plan_.vector / speed_);
}

void Pace::spend(double seconds) {
  if (seconds > 0) world_.compute(seconds, plan_.cores);
  idle_since_ = world_.now();
}

double Pace::draw() {
  const Draw random{seed_, Purpose::kFault, steps_, ~uint32_t(rank_)};  // a lane that no link has
  const double u = 1 - double(random.unit(0)), v = double(random.unit(1));
  switch (plan_.law) {
    case PacePlan::Law::kConstant:
      return plan_.step;
    case PacePlan::Law::kLognormal: {
      const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
      return plan_.step * std::exp(plan_.sigma * normal - plan_.sigma * plan_.sigma / 2);
    }
    case PacePlan::Law::kMarkov: {
      const double often = plan_.enter / (plan_.enter + plan_.leave);  // slow steps among all
      slow_ = v < (steps_ == 0 ? often : slow_ ? 1 - plan_.leave : plan_.enter);
      return plan_.step / (1 + often * (plan_.slow - 1)) * (slow_ ? plan_.slow : 1);
    }
    case PacePlan::Law::kTrace:
      return plan_
          .trace[(steps_ + plan_.trace.size() * uint64_t(rank_) / uint64_t(workers_)) % plan_.trace.size()];
  }
  return 0;
}

}  // namespace skein::comm::sim
