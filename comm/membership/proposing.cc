// When a member proposes, to which members, and which view follows from their promises.
#include <algorithm>
#include <cmath>

#include "comm/membership/succession.h"

namespace skein::comm {
namespace {

constexpr double kLongestPause = 2;  // seconds between two reminders of the epoch to a member not heard in it
constexpr int kMostTurns = 8;        // members before this one that it leaves time to
constexpr int kMostDoublings = 2;    // of the time between its attempts

}  // namespace

bool is_quorum(const Census& c) {
  if (2 * c.said > c.members) return true;
  if (c.all_others && 2 * c.dead <= c.members) return true;
  return c.has_register && 2 * c.said == c.members;
}

std::vector<Letter> Succession::tick(double now) {
  Letters out;
  clock_ = now;
  if (next_ || ended_) return out;
  tell_of_epoch(out);
  if (proposal_) {
    if (now - proposal_->sent >= options_.retry) repeat(out);
    if (proposal_) advance(out);
  } else if (!change_is_due()) {
    pace_.since.reset();
  } else {
    if (!pace_.since) pace_.since = now;
    if (now - *pace_.since >= delay()) propose(out);
  }
  return out;
}

// Each member says that it is here, and tells those not heard in this epoch that it has begun.
void Succession::tell_of_epoch(Letters& out) {
  if (clock_ < tell_at_) return;
  const bool first = tell_pause_ == 0;
  const std::string bytes = first ? content(Word::kHere).write() : now_.write();
  bool all = true;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (!peers_[r].votes() || int(r) == rank_ || (peers_[r].here && !first)) continue;
    out.push_back({now_.members[r].id, bytes});
    all = all && peers_[r].here;
  }
  tell_pause_ = first ? options_.retry : std::min(2 * tell_pause_, kLongestPause);
  tell_at_ = all ? HUGE_VAL : clock_ + tell_pause_;
}

bool Succession::change_is_due() const {
  const auto gone = [](const Peer& p) { return p.suspected || !p.votes() || p.leaving; };
  const auto stays = [](const Peer& p) { return p.votes() && !p.leaving; };
  const auto comes = [&](const auto& w) { return !absent_.count(w.first); };
  if (std::none_of(peers_.begin(), peers_.end(), stays)) return false;
  return frozen() || std::any_of(peers_.begin(), peers_.end(), gone) ||
         std::any_of(waiting_.begin(), waiting_.end(), comes);
}

// The lowest member that is not suspected proposes at once. After an attempt no two members wait equally
// long, and all wait longer the more attempts have failed.
double Succession::delay() const {
  const int before = int(std::count_if(peers_.begin(), peers_.begin() + rank_,
                                       [](const Peer& p) { return !p.suspected && p.votes(); }));
  const double turns = std::min(before, kMostTurns);
  if (pace_.attempts == 0) return options_.patience * turns;
  const double place = double(rank_) / double(peers_.size());
  return options_.patience * (1 + turns + place) * std::exp2(std::min(pace_.attempts - 1, kMostDoublings));
}

void Succession::propose(Letters& out) {
  proposal_ = Proposal();
  proposal_->ballot = {std::max(promised_.round, pace_.round) + 1, me_};
  proposal_->began = proposal_->sent = clock_;
  proposal_->promises.resize(peers_.size());
  proposal_->said.assign(peers_.size(), false);
  ask(content(Word::kPrepare), out);
}

// Asks the members that have not said yes, this one last, since its own answer needs no letter. The others
// get kHere, since they may know the next epoch by now, and reply with it.
void Succession::ask(const Content& c, Letters& out) {
  const std::string bytes = c.write(), here = content(Word::kHere).write();
  for (size_t r = 0; r < peers_.size(); ++r)
    if (int(r) != rank_ && peers_[r].votes())
      out.push_back({now_.members[r].id, proposal_->said[r] ? here : bytes});
  if (!proposal_->said[size_t(rank_)]) post(me_, c, out);
}

void Succession::repeat(Letters& out) {
  proposal_->sent = clock_;
  Content c = content(proposal_->value ? Word::kAccept : Word::kPrepare);
  if (proposal_->value && options_.has_register)
    proposal_->said.assign(peers_.size(), true);  // no member is asked
  if (proposal_->value) c.view = *proposal_->value;
  ask(c, out);
}

bool Succession::quorum() const {
  Census c{.has_register = options_.has_register};
  c.all_others = true;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r].never) continue;
    ++c.members;
    c.said += proposal_->said[r];
    c.dead += peers_[r].dead;
    c.all_others = c.all_others && (peers_[r].dead || proposal_->said[r]);
  }
  return rules_.quorum(c);
}

// Members that are suspected may be reachable again, as after a cut: their answers are awaited for
// a moment, too.
bool Succession::awaits_somebody() const {
  const double waited = clock_ - proposal_->began;
  for (size_t r = 0; r < peers_.size(); ++r)
    if (!proposal_->said[r] && peers_[r].votes() &&
        waited < (peers_[r].suspected ? options_.retry : options_.grace))
      return true;
  return false;
}

void Succession::advance(Letters& out) {
  if (proposal_->value && options_.has_register) return;  // the register is asked
  if (!quorum()) return;
  if (proposal_->value) return decide(*proposal_->value, out);
  if (awaits_somebody()) return;
  proposal_->value = chosen();
  if (!proposal_->value || options_.has_register) return;
  proposal_->said.assign(peers_.size(), false);
  repeat(out);
}

// A vote may belong to a view that has been decided, so the last one is proposed again.
std::optional<View> Succession::chosen() const {
  const Vote* last = nullptr;
  for (const auto& p : proposal_->promises)
    if (p && p->vote && (!last || p->vote->ballot > last->ballot)) last = &*p->vote;
  if (last && rules_.heeds_votes) return last->view;
  return successor();
}

// The members that promised and stay, then newcomers. The step is the smallest that the former completed.
std::optional<View> Succession::successor() const {
  View v{.epoch = now_.epoch + 1, .members = {}, .step = kNoState};
  std::map<MemberId, View::Member> newcomers;
  std::vector<const Promise*> of;
  for (size_t r = 0; r < peers_.size(); ++r) {
    const Promise* const p = proposal_->promises[r].get();
    if (!p) continue;
    for (const View::Member& m : p->waiting)
      if (!now_.has(m.id) && !absent_.count(m.id)) newcomers[m.id] = {m.id, m.card, false};
    if (p->leaving || peers_[r].leaving || peers_[r].dead) continue;
    if (p->oldest <= p->completed) v.step = std::min(v.step, p->completed);
    v.members.push_back({now_.members[r].id, p->card, true});
    of.push_back(p);
  }
  if (v.members.empty()) return {};
  if (v.step == kNoState) v.step = now_.step;
  for (size_t i = 0; i < of.size(); ++i) v.members[i].has_state = of[i]->oldest <= v.step;
  for (const auto& [id, m] : newcomers)
    if (v.members.size() < kMostMembers) v.members.push_back(m);
  return v;
}

}  // namespace skein::comm
