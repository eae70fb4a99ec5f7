// What is left of a training when a worker is lost: who writes the last checkpoint, and what the lost have in it.
#include <algorithm>

#include "apps/manifest.h"
#include "apps/together.h"
#include "apps/trainer.h"
#include "comm/averaging.h"

namespace skein::apps {

namespace {

// "2", "1, 2 and 3"
std::string list(const std::vector<int>& workers) {
  std::string s;
  for (size_t i = 0; i < workers.size(); ++i)
    s += text(i == 0 ? "" : i + 1 == workers.size() ? " and " : ", ", workers[i]);
  return s;
}

}  // namespace

std::string Trainer::how_to_resume() const {
  const std::vector<std::string> all = list_checkpoints(directory_);
  if (all.empty()) return "no checkpoint was written yet";
  return text("the checkpoint of step ", checkpoint_step(all.back()), " is sound: train_imagenet --resume ",
              directory_);
}

// A resumed run has all its workers again: the lost begin where the last of the living is. The center stays with
// worker 0 also if that is the last.
void Trainer::write_for_the_lost() {
  if (comm().rank() + 1 != comm().size()) return;
  for (int r : living_.lost())
    checkpoints_->write(k_, r, [this](Archive& a) {
      Without center(a, "strategy.center.");
      visit(center);
    });
}

// Workers in step end at one of the last steps that all the living have taken, those ahead by going back.
Outcome Trainer::end_without(const std::string& why) {
  const optim::Walk walk = [this](Archive& a) { visit(a); };
  comm::Communicator& all = living_.everybody();
  if (!asynchronous_ && in_step_)
    past_.restore(k_, walk);
  else if (!asynchronous_)
    past_.remember(k_, walk);
  for (;;) {
    std::vector<int> members;
    for (int r = 0; r < all.size(); ++r)
      if (all.membership().alive(all.world_rank(r))) members.push_back(r);
    note_losses();
    if (int(members.size()) == all.size()) throw Error(text(why, "; ", how_to_resume()));
    if (asynchronous_) return bereaved(members, how_to_resume());
    try {
      return end_among(members);
    } catch (const comm::PeerLost&) {  // one more
      const auto lives = [&](int r) { return all.membership().alive(all.world_rank(r)); };
      if (std::all_of(members.begin(), members.end(), lives)) throw;
    }
  }
}

Outcome Trainer::end_among(const std::vector<int>& members) {
  const std::unique_ptr<comm::Communicator> living = living_.everybody().group(members);
  const Common common = agree(*living);
  living_.everybody().give_up(living_.everybody().membership().dead(), others_than(members));
  if (!may_write(members, common.ended))
    return bereaved(members,
                    text("with ", members.size(), " of ", setup_.place.world,
                         " workers this side writes no checkpoint, since the other may; ", how_to_resume()));
  bool known = true;
  for (const auto& one : comm::gather_numbers(*living, {double(past_.knows(common.step))}))
    known = known && one[0] != 0;
  if (!known)
    return bereaved(members,
                    text("the others are too many steps apart for a new checkpoint; ", how_to_resume()));
  past_.restore(common.step, [this](Archive& a) { visit(a); });
  k_ = common.step;
  save_for_the_lost(*living, members);
  leave_trace(*living);
  return bereaved(members,
                  text("the others wrote a checkpoint of step ", k_, ", in which the lost have the state of ",
                       "worker ", members[0], "; resume with: train_imagenet --resume ", directory_));
}

std::vector<int> Trainer::others_than(const std::vector<int>& members) const {
  std::vector<int> out;
  for (int r = 0; r < setup_.place.world; ++r)
    if (std::find(members.begin(), members.end(), r) == members.end()) out.push_back(r);
  return out;
}

// What one of them has seen of an end is believed by all.
Trainer::Common Trainer::agree(comm::Communicator& living) {
  const comm::Communicator& all = living_.everybody();
  std::vector<double> mine = {double(k_)};
  for (int r = 0; r < all.size(); ++r)
    mine.push_back(living_.everybody().membership().ended(all.world_rank(r)));
  Common c{k_, std::vector<bool>(size_t(all.size()))};
  for (const auto& one : comm::gather_numbers(living, mine)) {
    c.step = std::min(c.step, int64_t(one[0]));
    for (size_t r = 0; r + 1 < one.size(); ++r) c.ended[r] = c.ended[r] || one[r + 1] != 0;
  }
  return c;
}

// One of the living says it for all.
Outcome Trainer::bereaved(const std::vector<int>& members, const std::string& rest) const {
  Outcome out;
  out.step = k_;
  out.interrupted = out.bereaved = true;
  if (setup_.place.rank != members[0]) return out;
  std::vector<int> dead;
  std::string why;
  for (const LostEvent& e : lost_) {
    dead.push_back(e.worker);
    if (why.find(e.why) == std::string::npos) why += (why.empty() ? "" : ", ") + e.why;
  }
  std::sort(dead.begin(), dead.end());
  out.why = text(dead.size() == 1 ? "worker " : "workers ", list(dead), dead.size() == 1 ? " is" : " are",
                 " lost: ", why, "; ", rest);
  return out;
}

// As a joining worker would, the lost take over a donor's state.
void Trainer::save_for_the_lost(comm::Communicator& living, const std::vector<int>& members) {
  const bool donor = setup_.place.rank == members[0];
  const optim::Walk walk = [this](Archive& a) { visit(a); };
  checkpoints_->attempt(setup_.place.world - int(members.size()));
  together(living, [&] {
    if (donor) checkpoints_->begin(k_);
  });
  together(living, [&] {
    checkpoints_->write(k_, setup_.place.rank, walk);
    for (int r : others_than(members))
      if (donor) checkpoints_->write(k_, r, walk);
  });
  together(living, [&] {
    if (donor) checkpoints_->commit(k_, identity(), data_index());
  });
}

}  // namespace skein::apps
