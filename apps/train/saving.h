// Saving: the checkpoints of a run. All workers write their part of one, or none is left.
#pragma once
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
  // `state` visits all that the next step, or the record of it, depends on.
  Saving(Run&, Batches&, const nn::Flat&, Walk state);

  // Continues from a checkpoint: loads the state and sets Run::k. Collective. Throws BadFile if it is
  // damaged or another training's.
  void load(const std::string& checkpoint);
  const std::string& resumed_from() const { return resumed_from_; }  // directory; empty: a new training
  bool continues() const { return continues_; }                      // it is the run in this directory
  // On worker 0: in lines, how the data differ from those of the checkpoint.
  const std::vector<std::string>& changes_of_data() const { return changes_of_data_; }

  // --checkpoint-every
  bool is_due_after_step() const { return every_.steps > 0 && run_.k % every_.steps == 0; }
  bool is_due_after_epoch() const { return every_.epochs > 0 && run_.epochs() % every_.epochs == 0; }
  bool is_saved() const { return saved_step_ == run_.k; }
  void note_saved() { saved_step_ = run_.k; }

  // A checkpoint of step k; collective. Throws BadFile, on all workers, and leaves earlier
  // checkpoints as they are.
  void write();
  // Likewise by those in `living`, whose workers are `members`: the others get the state of
  // the first of them.
  void write_among(comm::Communicator& living, const std::vector<int>& members);

 private:
  Identity identity() const;
  void write_for_the_lost();

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
