// What the workers of a training decide together: when to stop, and what is left when one of them is lost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/clock.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "comm/averaging.h"

namespace skein::apps {

namespace {
constexpr double kQuestionSeconds = 1;  // between two questions whether to stop: what Ctrl-C may take
constexpr comm::Tag kStop = comm::kOwnTags - 1;

// While it lives, no wait of this communicator ends for its length alone.
class Patience {
 public:
  explicit Patience(comm::Communicator& c) : comm_(c), before_(c.set_deadline(1e9)) {}
  ~Patience() { comm_.set_deadline(before_); }
  Patience(const Patience&) = delete;

 private:
  comm::Communicator& comm_;
  const double before_;
};
}  // namespace

// Asking at every step would make every algorithm synchronous. The steps between two questions are those of
// about a second of the fastest worker, which all hear and thus agree on.
bool Trainer::stopped() {
  const bool here = stop_ && stop_();
  if (!setup_.place.comm) return here;
  if (asynchronous_) return stopped_apart();
  if (k_ < next_question_) return false;
  const double each = (clock_seconds() - asked_at_) / double(std::max<int64_t>(1, k_ - asked_step_));
  const double steps =
      k_ == asked_step_ ? 1 : std::clamp(kQuestionSeconds / std::max(each, 1e-6), 1.0, 1000.0);
  bool stop = false;
  double next = steps;
  for (const auto& other : comm::gather_numbers(*setup_.place.comm, {double(here), steps}))
    stop = stop || other[0] != 0, next = std::min(next, other[1]);
  asked_at_ = clock_seconds();
  asked_step_ = k_;
  next_question_ = k_ + int64_t(next);
  return stop;
}

// Whoever is asked to stop tells the others; all meet, and those behind go on to the step of the one furthest
// ahead.
bool Trainer::stopped_apart() {
  comm::Communicator& comm = *setup_.place.comm;
  if (stop_at_ >= 0) return k_ >= stop_at_;
  if (!config_.replay.empty()) return false;  // the recording says when all meet, and only then they can stop
  if (!(stop_ && stop_()) && !comm.poll_any(kStop)) return false;
  for (int r = 0; r < comm.size(); ++r) try {
      if (r != comm.rank()) comm.push(r, kStop, k_, 1, Tensor::zeros({1}));
    } catch (const comm::PeerLost&) {  // it is told nothing any more
    }
  stop_at_ = k_;
  return meet();
}

// Once at a step. Synchronous workers are at the same step already. Others may wait for each other as long as
// it takes: a slow worker is no dead one.
bool Trainer::meet() {
  if (met_at_ == k_ || !asynchronous_) return true;
  for (;;) try {
      return meet_all();
    } catch (const comm::PeerLost&) {
      if (!go_on_with_the_living()) throw;
    }
}

bool Trainer::meet_all() {
  comm::Communicator& comm = *setup_.place.comm;
  const Patience patience(comm);
  if (!config_.replay.empty() && stop_ && stop_()) stop_at_ = k_;
  for (bool together = false; !together;) {
    strategy_->settle(*worker_);
    int64_t furthest = k_, stop = stop_at_;
    together = true;
    for (const auto& other : comm::gather_numbers(comm, {double(k_), double(stop_at_)})) {
      together = together && int64_t(other[0]) == k_;
      furthest = std::max(furthest, int64_t(other[0]));
      stop = std::max(stop, int64_t(other[1]));
    }
    if (stop >= 0) stop_at_ = furthest;
    if (k_ < furthest) break;
  }
  if (k_ < stop_at_) return false;
  met_at_ = k_;
  return true;
}

// False: nobody is lost, or somebody without whom the algorithm cannot go on. The living may not yet agree
// who is dead; then they wait in different groups until the last of them has heard, which ends all those
// waits but one.
bool Trainer::go_on_with_the_living() {
  if (!everybody_) everybody_ = setup_.place.comm;
  std::vector<int> members, dead;
  for (int r = 0; r < everybody_->size(); ++r)
    (everybody_->membership().alive(everybody_->world_rank(r)) ? members : dead).push_back(r);
  // Rows that need a communicator even alone are those with a center: worker 0 serves it, or fetches it for
  // all; the others know of each other only by it.
  if (!optim::strategy_row(config_.algorithm).needs_peers || (!dead.empty() && dead[0] == 0)) return false;
  if (int(members.size()) == setup_.place.comm->size()) return false;
  living_.push_back(everybody_->group(members));
  setup_.place.comm = worker_->comm = living_.back().get();
  progress_.say(fmt::format("worker {} is lost; {} go on", fmt::join(dead, ", "), members.size()));
  return true;
}

// A resumed run has all its workers again: the lost begin where the last of the living is.
void Trainer::write_for_the_lost() {
  if (living_.empty() || setup_.place.comm->rank() + 1 != setup_.place.comm->size()) return;
  for (int r = 0; r < everybody_->size(); ++r)
    if (!everybody_->membership().alive(everybody_->world_rank(r)))
      checkpoints_->write(k_, r, [this](Archive& a) { visit(a); });
}

// Workers can be some steps apart: those ahead go back to the last step that all the living have taken.
Outcome Trainer::end_without(const std::string& why) {
  const optim::Walk walk = [this](Archive& a) { visit(a); };
  comm::Communicator& all = *setup_.place.comm;
  if (asynchronous_)
    throw Error(text(why, "; the last checkpoint is sound: train_imagenet --resume ", directory_));
  if (in_step_)
    past_.restore(k_, walk);
  else
    past_.remember(k_, walk);

  std::vector<int> members, dead;
  for (int r = 0; r < setup_.place.world; ++r) (all.membership().alive(r) ? members : dead).push_back(r);
  if (dead.empty())
    throw Error(text(
        why, "; every worker is alive, so none is given up: give a longer --deadline or --wait forever"));
  const std::unique_ptr<comm::Communicator> living = all.group(members);
  int64_t common = k_;
  for (const auto& other : comm::gather_numbers(*living, {double(k_)}))
    common = std::min(common, int64_t(other[0]));
  together(living.get(), [&] {
    if (!past_.knows(common))
      throw Error(text(why,
                       "; the living are too many steps apart for a new checkpoint, the last one is sound: ",
                       "train_imagenet --resume ", directory_));
  });
  past_.restore(common, walk);
  k_ = common;
  save_for_the_lost(*living, members);
  leave_trace(living.get());

  std::string lost;
  for (int r : dead) lost += (lost.empty() ? "" : ", ") + std::to_string(r);
  Outcome out{.step = k_, .interrupted = true, .bereaved = "", .score = {}, .ema = {}, .hash = ""};
  out.bereaved =
      text(dead.size() == 1 ? "worker " : "workers ", lost, dead.size() == 1 ? " is" : " are", " lost (", why,
           "); the others wrote a checkpoint of step ", k_, ", in which the lost have the state of worker ",
           members[0], "; go on with: train_imagenet --resume ", directory_);
  return out;
}

// As a joining worker would, the lost take over a donor's state.
void Trainer::save_for_the_lost(comm::Communicator& living, const std::vector<int>& members) {
  const bool donor = setup_.place.rank == members[0];
  const optim::Walk walk = [this](Archive& a) { visit(a); };
  together(&living, [&] {
    if (donor) checkpoints_->begin(k_);
  });
  together(&living, [&] {
    checkpoints_->write(k_, setup_.place.rank, walk);
    for (int r = 0; r < setup_.place.world && donor; ++r)
      if (std::find(members.begin(), members.end(), r) == members.end()) checkpoints_->write(k_, r, walk);
  });
  together(&living, [&] {
    if (donor) checkpoints_->commit(k_, identity());
  });
}

}  // namespace skein::apps
