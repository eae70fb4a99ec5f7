// Proposal: which view follows from the promises.
#include "comm/membership/proposal.h"

#include <algorithm>
#include <map>
#include <utility>

namespace skein::comm {

Proposal::Proposal(Ballot b, int members, double now)
    : ballot_(b), asked_(now), promises_(size_t(members)), said_(size_t(members)) {}

void Proposal::promised(int rank, Promise p) {
  said_[size_t(rank)] = true;
  promises_[size_t(rank)] = std::make_unique<Promise>(std::move(p));
}

void Proposal::choose(const Roll& roll, bool heeds_votes) {
  const Vote* last = nullptr;
  for (const auto& p : promises_)
    if (p && p->vote && (!last || p->vote->ballot > last->ballot)) last = &*p->vote;
  value_ = last && heeds_votes ? last->view : successor(roll);
  if (value_) said_.assign(said_.size(), false);
}

// The members that promised and stay, then newcomers. The step is the smallest that the former completed.
std::optional<View> Proposal::successor(const Roll& roll) const {
  View v{.epoch = roll.now().epoch + 1, .members = {}, .step = kNoState};
  std::map<MemberId, View::Member> newcomers;
  std::vector<const Promise*> of;
  for (int r = 0; r < roll.size(); ++r) {
    const Promise* const p = promises_[size_t(r)].get();
    if (!p) continue;
    for (const View::Member& m : p->waiting)
      if (roll.may_come(m.id)) newcomers[m.id] = {m.id, m.card, false};
    if (p->leaving || roll[r].leaving || roll[r].dead) continue;
    if (p->oldest <= p->completed) v.step = std::min(v.step, p->completed);
    v.members.push_back({roll.id(r), p->card, true});
    of.push_back(p);
  }
  if (v.members.empty()) return {};
  if (v.step == kNoState) v.step = roll.now().step;
  for (size_t i = 0; i < of.size(); ++i) v.members[i].has_state = of[i]->oldest <= v.step;
  for (const auto& [id, m] : newcomers)
    if (v.members.size() < kMostMembers) v.members.push_back(m);
  return v;
}

}  // namespace skein::comm
