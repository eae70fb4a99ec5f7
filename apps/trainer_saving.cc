// How a run is saved: all workers write their part of a checkpoint, or none is left.
#include "apps/clock.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "engine/vec.h"

namespace skein::apps {

void Trainer::save() {
  if (saved_step_ == k_) return;
  try {
    wholly([&] {
      meet();
      flush_log();
      write_checkpoint();
    });
  } catch (const BadFile& e) {
    if (!is_of_all(e, comm())) throw;
    throw Agreed<BadFile>(text(e.what(), "; ", how_to_resume()));
  }
  saved_step_ = k_;
}

void Trainer::write_checkpoint() {
  const Timed t(seconds_.checkpoint, trace_.get(), "checkpoint");
  together(comm(), [&] {
    if (!meters_.read() || !all_finite(flat_.x)) refuse_bad_loss(k_);
  });
  unite_odd_files();
  // While it is saved, what earlier runs have seen includes this one.
  struct Restore {
    DataRecord& place;
    const DataRecord before;
    ~Restore() { place = before; }
  } const restore{data_before_, std::exchange(data_before_, data_so_far())};
  checkpoints_->attempt(living_.changes());
  try {
    together(comm(), [&] {
      if (first()) checkpoints_->begin(k_);
    });
    together(comm(), [&] {
      checkpoints_->write(k_, setup_.place.rank, [this](Archive& a) { visit(a); });
      write_for_the_lost();
    });
    together(comm(), [&] {
      if (first()) checkpoints_->commit(k_, identity(), data_index());
    });
  } catch (...) {
    if (first()) checkpoints_->abandon(k_);
    throw;
  }
}

}  // namespace skein::apps
