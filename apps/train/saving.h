// Saving: the checkpoints of a run. A checkpoint exists only if all workers have written their part.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/checkpoint/checkpoint.h"
#include "apps/train/batches.h"
#include "nn/module.h"

namespace skein::apps {

// "the checkpoint of step 120 is sound: train_imagenet --resume DIR", or that there is none.
std::string how_to_resume(const std::string& directory);

class Saving {
 public:
  // `state` visits everything that the next step, or its record, depends on.
  Saving(Run&, Batches&, const nn::Flat&, Walk state);

  // Continues from a checkpoint: loads the state and sets Run::k. Collective. Throws BadFile if it is
  // damaged or another training's.
  void load(const std::string& checkpoint);
  const std::string& resumed_from() const { return resumed_from_; }  // directory; empty for a new training
  bool continues() const { return continues_; }                      // it continues the run in this directory
  // On worker 0: lines that say how the data differ from those of the checkpoint.
  const std::vector<std::string>& changes_of_data() const { return changes_of_data_; }

  // Continues the run of this directory without a checkpoint.
  void continue_here();

  // --checkpoint-every
  bool is_due_after_step() const { return every_.steps > 0 && run_.k % every_.steps == 0; }
  bool is_due_after_epoch() const { return every_.epochs > 0 && run_.epochs() % every_.epochs == 0; }
  bool is_saved() const { return saved_step_ == run_.k; }
  void note_saved() { saved_step_ = run_.k; }

  // Writes a checkpoint of step k. Collective. Throws BadFile on all workers and then
  // leaves earlier checkpoints unchanged.
  void write();
  // The same by the workers in `living`, which are `members`; the other workers get the state
  // of the first member.
  void write_among(comm::Communicator& living, const std::vector<int>& members);

 private:
  Identity identity() const;
  void commit();
  void write_for_the_lost();
  void unless_given_up(const std::function<void()>& f);

  Run& run_;
  Batches& batches_;
  const std::string layout_;  // layout_hash of the model
  const Walk state_;
  const Every every_;
  Checkpoints checkpoints_;
  int64_t saved_step_ = -1;
  std::string resumed_from_;
  bool continues_ = false;
  std::vector<std::string> changes_of_data_;
};

// The workers of a run of `world` that are not among `members`.
std::vector<int> others_than(const std::vector<int>& members, int world);

}  // namespace skein::apps
