// FlatWorker: one worker of a flat run, on its thread of the simulated world.
#pragma once
#include <optional>

#include "apps/embed/vector_worker.h"
#include "apps/flat/flat_record.h"
#include "apps/flat/quadratic.h"
#include "engine/loops/moved_bytes.h"

namespace skein::apps {

// What all workers share.
struct FlatTask {
  const Config& config;
  const WorldFile& world;
  const FlatModel& model;
  const optim::Schedule& schedule;
  FlatObserver& observer;
};

// Thrown by the first worker that sees, before a step, that the user has stopped the run.
struct Interruption {};

class FlatWorker {
 public:
  FlatWorker(const FlatTask&, const Member&);
  void train();  // all steps, until all workers have taken theirs; or throws Interruption

 private:
  Tensor gradient(const optim::Slices&);
  Tensor loss() const;
  void step();
  void end();

  const FlatTask& task_;
  const Member& me_;
  const Tensor x_;
  const std::optional<Quadratic> quadratic_;  // none: a ghost's gradients are zero
  MovedBytes moved_;                          // by this worker, between the steps of the pace
  VectorWorker worker_;
  Costs costs_;
  const std::vector<FlatPart> parts_;  // of backward: after each, messages move on
  int64_t k_ = 0;
};

}  // namespace skein::apps
