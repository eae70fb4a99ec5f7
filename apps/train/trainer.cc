// What a training is: steps of an algorithm, between which the workers record, evaluate, save
// and stop together.
//
//   learning.h   x, and all that changes it                record.h     metrics and console
//   gradient.h   where a batch becomes a gradient at x     scoring.h    evaluations, the best model
//   batches.h    the images of this worker's steps         saving.h     checkpoints
//   stopping.h   the step at which all stop                results.h    the files that are left at the end
//
// What a lost worker costs. In an elastic run (docs/elastic.md; the default) the others agree on who is left,
// go back to the last step that all have taken, or to the last mean of a periodic algorithm, and train on
// with a new Trainer (leave_epoch, inherit). Otherwise, if the algorithm has a center, they repeat what was
// interrupted (survivors.h); if it has none, they save the last common step and end (rollback.h), and
// asynchronous workers end as they are.
#include "apps/train/trainer.h"

#include "apps/base/together.h"
#include "apps/train/opening.h"
#include "comm/membership/council.h"

namespace skein::apps {

Trainer::Trainer(const Config& config, Setup setup, std::string directory, Progress& progress,
                 Survivors& survivors)
    : run_(config, std::move(setup), std::move(directory), progress, survivors),
      traces_(run_),
      batches_(run_),
      learning_(run_, batches_, traces_),
      record_(run_, batches_, learning_),
      scoring_(run_, traces_, learning_),
      results_(run_, batches_, traces_, learning_, record_, scoring_),
      dealing_(run_, batches_, learning_, record_.workers()),
      stopping_(run_, dealing_.beside(), [this] { learning_.strategy->settle(*learning_.worker); }),
      saving_(run_, batches_, learning_.flat, [this](Archive& a) { visit(a); }),
      rollback_(run_, record_.workers(), saving_, traces_, learning_, [this](Archive& a) { visit(a); }) {
  survivors.when_fewer([this] { regroup(); });
}

Trainer::~Trainer() { run_.survivors.when_fewer({}); }

// All that the next step, or the record of it, depends on.
void Trainer::visit(Archive& a) {
  learning_.visit(a), run_.costs.visit(a), record_.visit(a);
  scoring_.visit(a), batches_.visit(a);
  a("closed_epochs", closed_epochs_);
}

void Trainer::begin() {
  if (std::exchange(begun_, true)) return;
  run_.survivors.wholly([&] { learning_.start(); });
  run_.costs.begin(run_.comm());
}

void Trainer::resume(const std::string& checkpoint) {
  begin();
  saving_.load(checkpoint);
  learning_.see_center();
}

void Trainer::begin_again() { saving_.continue_here(); }

void Trainer::inherit(const Legacy& legacy) {
  begin();
  const double lost = legacy.restore(run_.comm(), run_.config.algorithm, [this](Archive& a) { visit(a); });
  run_.k = legacy.first_step(run_.setup.place.council->restored());
  inherited_ = true;
  run_.setup.portions->deal_again(data::Leftover::read(legacy.leftover));
  if (run_.apart) closed_epochs_ = legacy.closed_epochs;
  learning_.see_center();
  saving_.continue_here();
  record_.continue_with(legacy, lost);
}

Outcome Trainer::run(const std::function<bool()>& stop, const std::function<bool()>& leave) {
  run_.stop = stop, run_.leave = leave;
  begin();
  if (comm::Council* const council = run_.setup.place.council; council && !inherited_)
    council->complete_step(run_.k, run_.k);  // others can go on from here
  bool ready = false;
  try {
    run_.survivors.wholly(
        [&] { together(run_.comm(), [&] { open_directory(run_, record_, scoring_, saving_, traces_); }); });
    stopping_.begin();
    record_.begin();
    run_.survivors.wholly([&] { traces_.start(), dealing_.begin(); });
    batches_.open();
    ready = true;
    return finish(!train());
  } catch (const comm::EpochEnds&) { return leave_epoch(); } catch (const comm::PeerLost& e) {
    if (!ready && !run_.setup.place.council) throw;
    return run_.setup.place.council ? leave_epoch() : rollback_.end(e.what());
  } catch (const comm::Timeout& e) {
    if (!ready) throw;
    return rollback_.end(text(e.what(),
                              "; every worker is alive, so none is given up: give a longer --deadline ",
                              "or --wait forever"));
  } catch (const std::exception& e) {
    const bool of_all = dynamic_cast<const OfAll*>(&e) || dynamic_cast<const comm::Disagreement*>(&e);
    if (!of_all) run_.comm().transport().fail();
    throw;
  }
}

// The membership changes. If other workers have completed the run meanwhile, there is no further epoch.
Outcome Trainer::leave_epoch() try { return rollback_.leave_epoch(); } catch (const comm::RunEnded& e) {
  return results_.ended(e.end);
}

// False: stopped on the way.
bool Trainer::train() {
  for (;;) {
    if (run_.epochs() > closed_epochs_ && !close_epoch()) return false;
    if (run_.k == run_.setup.total_steps || scoring_.is_enough()) return true;
    if (stopping_.here()) return false;
    step();
  }
}

// While it iterates, the algorithm alone writes x: it asks for the gradient at x, exchanges with its peers
// what its paper says, and steps.
void Trainer::step() {
  if (run_.asynchronous) record_.workers().note_losses();
  learning_.before_step();
  traces_.before_step();
  rollback_.step([this] {
    StepCosts costs(run_.costs, run_.comm());
    learning_.strategy->iterate(*learning_.worker, run_.k);
    learning_.after_step();
    traces_.add_step(costs.end());
  });
  ++run_.k;
  record_.end_step();
  if (saving_.is_due_after_step()) save();
}

// False: stopped on the way; a resumed run, or one whose membership has changed, closes the epoch again.
bool Trainer::close_epoch() {
  std::optional<SeenByAll> seen;
  rollback_.between_steps([&] {
    run_.survivors.wholly([&] {
      stopping_.meet();
      if (stopping_.agreed()) return;
      record_.flush();
      record_.read_losses();
      if (scoring_.is_due() && !scoring_.score()) return;
      seen = record_.epoch();
      dealing_.ask_all();
    });
    if (!seen) return;
    record_.write_score(scoring_.take_event());
    record_.close_epoch(*seen, scoring_.line());
    closed_epochs_ = run_.epochs();
  });
  dealing_.act();
  if (seen && saving_.is_due_after_epoch()) save();
  return seen.has_value();
}

void Trainer::save() {
  if (saving_.is_saved()) return;
  try {
    run_.survivors.wholly([&] {
      stopping_.meet();
      record_.flush();
      const Timed t = traces_.timed(run_.costs.seconds.checkpoint, "checkpoint");
      record_.refuse_bad_numbers();
      saving_.write();
    });
  } catch (const BadFile& e) {
    if (!is_of_all(e, run_.comm())) throw;
    throw Agreed<BadFile>(text(e.what(), "; ", how_to_resume(run_.directory)));
  }
  saving_.note_saved();
}

// A run that cannot be saved for lack of space may still leave its model, which is smaller.
Outcome Trainer::finish(bool interrupted) {
  std::string unsaved;
  try {
    save();
  } catch (const BadFile& e) {
    if (interrupted || !is_of_all(e, run_.comm())) throw;
    unsaved = e.what();
  }
  if (!interrupted) {
    rollback_.keep([&] { learning_.strategy->finish(*learning_.worker); });
    const bool scored = scoring_.is_current();
    run_.survivors.wholly([&] {
      stopping_.meet();
      interrupted = !scored && !scoring_.score();
    });
    record_.write_score(scoring_.take_event());
  }
  run_.progress.finish();
  batches_.say_unreadable();
  Outcome out;
  run_.survivors.wholly([&] {
    stopping_.meet();
    out = results_.write(interrupted);
  });
  if (const std::string odd = run_.setup.odd_files->to_line(); !odd.empty()) run_.progress.say(odd);
  if (!unsaved.empty())
    throw Agreed<BadFile>(text(unsaved, "; the model was written: ", run_.directory, "/model.safetensors"));
  return out;
}

// A worker is lost and the algorithm continues: from here on all communication is among those that are left.
void Trainer::regroup() {
  learning_.regroup();
  stopping_.meet_again();
  record_.workers().note_losses();
}

}  // namespace skein::apps
