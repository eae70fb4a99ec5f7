// Begins, writes and commits checkpoints, with barriers between the steps.
#include "apps/train/saving.h"

#include <algorithm>
#include <filesystem>

#include "apps/base/printable.h"
#include "apps/base/together.h"
#include "apps/checkpoint/manifest.h"
#include "apps/checkpoint/reshare.h"
#include "apps/model/weights.h"
#include "comm/membership/council.h"

namespace skein::apps {

namespace fs = std::filesystem;
namespace {
constexpr double kUntilTold = 5;  // seconds within which a worker that goes on learns that it was given up
}

std::string how_to_resume(const std::string& directory) {
  const std::vector<std::string> all = list_checkpoints(directory);
  if (all.empty()) return "no checkpoint was written yet";
  return text("the checkpoint of step ", checkpoint_step(all.back()), " is sound: train_imagenet --resume ",
              shell_word(directory));
}

std::vector<int> others_than(const std::vector<int>& members, int world) {
  std::vector<int> out;
  for (int r = 0; r < world; ++r)
    if (std::find(members.begin(), members.end(), r) == members.end()) out.push_back(r);
  return out;
}

Saving::Saving(Run& run, Batches& batches, const nn::Flat& flat, Walk state)
    : run_(run),
      batches_(batches),
      layout_(layout_hash(flat)),
      state_(std::move(state)),
      every_(parse_every(run.config)),
      checkpoints_(run.directory, int(run.config.keep_checkpoints)) {}

Identity Saving::identity() const {
  return {.model = run_.config.model,
          .layout = layout_,
          .algorithm = run_.config.algorithm,
          .world = run_.setup.place.world,
          .data = run_.config.data.substr(0, run_.config.data.find(':')),
          .seed = uint64_t(run_.config.seed),
          .global_batch = run_.setup.global_batch};
}

void Saving::load(const std::string& checkpoint) {
  run_.survivors.wholly([&] {
    together(run_.comm(), [&] {
      if (run_.first()) verify_checkpoint(checkpoint);
    });
    together(run_.comm(), [&] {
      const Manifest m = read_manifest(checkpoint);
      run_.setup.portions->deal_again(data::Leftover::read(m.leftover));
      const bool same_world = m.identity.world == run_.setup.place.world;
      const auto load = same_world ? load_checkpoint : load_reshared;
      run_.k = load(checkpoint, run_.setup.place.rank, identity(), state_).step;
    });
  });
  if (run_.k > run_.setup.total_steps)
    throw BadOption(text(checkpoint, " has ", run_.k, " steps behind it, but this run ends after ",
                         run_.setup.total_steps, "; give a larger --epochs or --steps"));
  std::error_code none;
  resumed_from_ = fs::path(checkpoint).parent_path().parent_path().string();
  continues_ = fs::equivalent(resumed_from_, run_.directory, none);
  if (run_.first())
    changes_of_data_ = changes_since(read_manifest(checkpoint).images, batches_.index(), run_.setup.data);
  if (continues_) note_saved();
}

void Saving::continue_here() {
  resumed_from_ = run_.directory;
  continues_ = true;
}

void Saving::commit() {
  const data::Portions& p = *run_.setup.portions;
  const bool even = p.even() && !run_.config.batch_size.automatic;
  checkpoints_.commit(run_.k, identity(), batches_.index(), p.leftover().write(),
                      even ? std::vector<int64_t>() : p.shares());
}

// A worker that is stopped in f, and given up, finds that the others have taken away what it had begun to
// write. That is no fault of the disk: it ends as one that was given up.
void Saving::unless_given_up(const std::function<void()>& f) try { f(); } catch (const BadFile&) {
  if (comm::Council* const council = run_.setup.place.council; council && checkpoints_.is_taken_away(run_.k))
    council->require_unchanged(kUntilTold);
  throw;
}

void Saving::write() {
  comm::Communicator& comm = run_.comm();
  batches_.take_stock();
  comm::Council* const council = run_.setup.place.council;
  checkpoints_.attempt(run_.survivors.changes() + (council ? int(council->now().epoch) : 0));
  try {
    together(comm, [&] {
      if (run_.first()) checkpoints_.begin(run_.k);
    });
    together(comm, [&] {
      unless_given_up([&] {
        checkpoints_.write(run_.k, run_.setup.place.rank, state_);
        write_for_the_lost();
      });
    });
    together(comm, [&] {
      // Who was stopped here, and given up, must not take the others' checkpoints for those of
      // an abandoned history.
      if (council) council->require_unchanged();
      if (run_.first()) unless_given_up([&] { commit(); });
    });
  } catch (...) {
    if (run_.first()) checkpoints_.abandon(run_.k);
    throw;
  }
}

// A resumed run has all its workers again: the lost ones start from the state of the last living one. The
// center stays with worker 0 even if that is the last.
void Saving::write_for_the_lost() {
  if (run_.comm().rank() + 1 != run_.comm().size()) return;
  for (int r : run_.survivors.lost())
    checkpoints_.write(run_.k, r, [this](Archive& a) {
      Without center(a, "strategy.center.");
      state_(center);
    });
}

// The lost workers get a donor's state, as a joining worker would.
void Saving::write_among(comm::Communicator& living, const std::vector<int>& members) {
  const int world = run_.setup.place.world, me = run_.setup.place.rank;
  const bool donor = me == members[0];
  checkpoints_.attempt(world - int(members.size()));
  together(living, [&] {
    if (donor) checkpoints_.begin(run_.k);
  });
  together(living, [&] {
    checkpoints_.write(run_.k, me, state_);
    for (int r : others_than(members, world))
      if (donor) checkpoints_.write(run_.k, r, state_);
  });
  together(living, [&] {
    if (donor) commit();
  });
}

}  // namespace skein::apps
