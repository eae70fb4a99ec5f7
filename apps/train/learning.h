// Learning: one worker's model, its gradient, its optimizer's rule, and the algorithm that uses them.
#pragma once
#include <memory>
#include <optional>

#include "apps/evaluation/consensus_model.h"
#include "apps/evaluation/ema.h"
#include "apps/train/gradient/gradient.h"
#include "engine/device/memory.h"
#include "optim/schedule.h"
#include "optim/whole_step.h"

namespace skein::apps {

struct Learning {
  // Lays the model out in one vector x. The parameters of its layers are windows of x from here on.
  Learning(Run&, Batches&, Traces&);
  Learning(const Learning&) = delete;

  void start();  // the algorithm makes its vectors, and what the workers share; collective
  // Call it after loading the state if workers may be lost: all see the center, so that they can continue
  // from it even if the worker that keeps it is lost at once. Collective.
  void see_center();
  void regroup();      // the peers are those that are left
  void weigh();        // the workers' shares of the global batch are what Portions says
  void before_step();  // sets the rate of step k and this worker's share of its samples
  void after_step();   // drops the batch of a step without a gradient; updates the moving average
  // While the result lives, the model holds the mean over the workers, or that of their moving averages.
  ConsensusModel consensus(bool of_averages = false);  // collective
  void visit(Archive&);
  optim::Shared shared();  // the states from which the others can continue without this worker

  Run& run;
  nn::Flat flat;  // x, g and the buffers
  Gradient gradient;
  std::unique_ptr<optim::Rule> rule;
  std::unique_ptr<optim::Rule> recorded_rule;  // what the algorithm uses; null where steps are not recorded
  optim::Schedule schedule;
  std::unique_ptr<optim::Strategy> strategy;
  std::optional<optim::Worker> worker;  // x, g, rule, gradient and peers as the algorithm sees them
  std::optional<Ema> ema;               // with --ema

 private:
  Learning(Run&, Batches&, Traces&, const MemoryFor&);
  double gain_ = 1;  // of this worker's rate
};

}  // namespace skein::apps
