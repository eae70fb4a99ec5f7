// Pace: how long a worker of a simulated world computes in each of its steps.
#pragma once
#include "comm/sim/world.h"

namespace skein::comm::sim {

struct PacePlan {
  enum class Law : uint8_t { kConstant, kLognormal, kMarkov, kTrace } law = Law::kConstant;
  double step = 0;          // seconds of a step with a whole batch, on average, alone on `cores`
  double forward = 1. / 3;  // share of it that forward takes; backward has the rest
  double cores = 1;         // that a worker uses
  double ahead = 0;         // seconds of a step that need no weights: done while the worker waits before it
  double vector = 0;        // beside it: seconds for each byte of its algorithm's vectors that a worker moves
  double sigma = 0;         // kLognormal: standard deviation of the logarithm
  double slow = 1;          // kMarkov: a slow step takes so many times as long as one that is not,
  double enter = 0;         // with this probability a worker that is not slow is so in its next step,
  double leave = 1;         // and one that is slow is not any more
  // kTrace: seconds of one step after the other; each worker begins at a place of its own, and at the end
  // goes on with the first.
  std::vector<double> trace = {};
};

// Of one worker, `speed` times as fast as the plan says. The n-th step takes the same in every run of a seed.
// The world outlives it.
class Pace {
 public:
  Pace(World&, PacePlan, uint64_t seed, int rank, int workers, double speed = 1);
  void begin();  // the next step
  // The calling thread has worked for such a share of this step: of forward, or of backward.
  void forward(double share) { work(share * plan_.forward); }
  void backward(double share) { work(share * (1 - plan_.forward)); }
  void whole() { work(1); }    // of both, in one piece
  void vectors(double bytes);  // it has moved so many beside the step
  double forward_share() const { return plan_.forward; }
  double seconds() const { return seconds_; }  // of this step, alone

 private:
  double draw();
  void work(double share);
  void spend(double seconds);

  World& world_;
  const PacePlan plan_;
  const uint64_t seed_;
  const int rank_, workers_;
  const double speed_;
  uint64_t steps_ = 0;
  bool slow_ = false;
  double seconds_ = 0, done_ = 0;  // of this step, alone; of it, done while the worker waited
  double idle_since_ = 0;          // by the world's clock
};

}  // namespace skein::comm::sim
