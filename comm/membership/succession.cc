// Succession: acceptors answer ballots, a proposer collects them, and whoever knows the outcome tells it.
#include "comm/membership/succession.h"

#include <algorithm>
#include <cmath>

#include "engine/base.h"

namespace skein::comm {
namespace {

constexpr double kLongestPause = 2;  // seconds between two tellings of the epoch to a member not heard in it
constexpr int kMostTurns = 8;        // members before this one that it leaves time to
constexpr int kMostDoublings = 5;    // of the time between its attempts

}  // namespace

bool is_quorum(const Census& c) {
  if (2 * c.said > c.members) return true;
  if (c.all_others && 2 * c.dead <= c.members) return true;
  return c.has_register && 2 * c.said == c.members;
}

Succession::Succession(MemberId me, View now, Options options, Rules rules)
    : me_(me),
      now_(std::move(now)),
      options_(options),
      rules_(rules),
      rank_(now_.rank(me)),
      peers_(now_.members.size()) {
  CHECK(rank_ >= 0, "a succession is of the epoch's members");
  const View::Member& mine = now_.members[size_t(rank_)];
  own_.completed = now_.step, own_.card = mine.card;
  own_.oldest = mine.has_state ? now_.step : kNoState;
  peers_[size_t(rank_)].here = true;
}

// ---- what is known

void Succession::suspect(MemberId m) {
  const int r = now_.rank(m);
  if (r < 0) absent_.insert(m);
  if (r >= 0 && r != rank_) peers_[size_t(r)].suspected = true;
}

void Succession::trust(MemberId m) {
  const int r = now_.rank(m);
  if (r < 0) absent_.erase(m);
  if (r >= 0) peers_[size_t(r)].suspected = false;
}

void Succession::prove_dead(MemberId m) {
  const int r = now_.rank(m);
  CHECK(r != rank_, "a member cannot prove its own death");
  if (r >= 0) peers_[size_t(r)].dead = true;
  if (r < 0) absent_.insert(m), waiting_.erase(m);
}

void Succession::leaves(MemberId m) {
  const int r = now_.rank(m);
  if (r >= 0) peers_[size_t(r)].leaving = true;
  if (r < 0) absent_.insert(m), waiting_.erase(m);
  if (r == rank_) own_.leaving = true;
}

void Succession::joins(const View::Member& m) {
  if (!now_.has(m.id) && waiting_.size() < kMostMembers) waiting_[m.id] = {m.id, m.card, false};
}

std::vector<View::Member> Succession::waiting() const {
  std::vector<View::Member> all;
  for (const auto& [id, m] : waiting_)
    if (!next_ || !next_->has(id)) all.push_back(m);
  return all;
}

// ---- this member's state

bool Succession::complete_step(int64_t steps, int64_t oldest) {
  CHECK(steps >= own_.completed && oldest <= steps, "steps are completed one after the other", steps);
  if (frozen()) return false;
  own_.completed = steps, own_.oldest = oldest;
  return true;
}

void Succession::restored() {
  if (own_.oldest == kNoState) own_.oldest = own_.completed;
}

void Succession::card(std::string card) { own_.card = std::move(card); }

// ---- letters

Content Succession::content(Word word) const {
  Content c;
  c.word = word, c.epoch = now_.epoch;
  if (proposal_) c.ballot = proposal_->ballot;
  return c;
}

void Succession::post(MemberId to, Content c, Letters& out) {
  if (to == me_)
    hear(me_, rank_, c, out);
  else
    out.push_back({to, c.write()});
}

// To those who have not said yes, this member last: its own answer needs no letter. Those who have said so may have been
// told of the next epoch since, and tell it when they hear from this one.
void Succession::ask(const Content& c, Letters& out) {
  const std::string bytes = c.write(), here = content(Word::kHere).write();
  for (size_t r = 0; r < peers_.size(); ++r)
    if (int(r) != rank_ && !peers_[r].dead)
      out.push_back({now_.members[r].id, proposal_->said[r] ? here : bytes});
  if (!proposal_->said[size_t(rank_)]) post(me_, c, out);
}

std::vector<Letter> Succession::receive(MemberId from, const std::string& bytes) {
  Letters out;
  std::optional<Content> c = Content::read(bytes);
  if (!c || from == me_) {
    ++unreadable_;
    return out;
  }
  if (c->word == Word::kDecided) {
    hear_decided(from, c->view, out);
  } else if (c->epoch < now_.epoch) {
    out.push_back({from, (next_ ? *next_ : now_).write()});
  } else if (c->epoch > now_.epoch) {
    if (!next_) post(from, content(Word::kHere), out);
  } else if (next_) {
    if (c->word == Word::kPrepare || c->word == Word::kAccept || c->word == Word::kHere)
      out.push_back({from, next_->write()});
  } else if (const int rank = now_.rank(from); rank >= 0) {
    hear(from, rank, *c, out);
  }
  return out;
}

// A word of this epoch, before its successor is known.
void Succession::hear(MemberId from, int rank, Content& c, Letters& out) {
  peers_[size_t(rank)].here = true;
  const bool mine = proposal_ && c.ballot == proposal_->ballot;
  switch (c.word) {
    case Word::kPrepare:
      if (c.ballot.by == from) hear_prepare(from, c.ballot, out);
      break;
    case Word::kPromise:
      if (mine && !proposal_->value) hear_promise(rank, c, out);
      break;
    case Word::kAccept:
      if (c.ballot.by == from && c.view.epoch == now_.epoch + 1) hear_accept(from, c, out);
      break;
    case Word::kAccepted:
      if (!mine || !proposal_->value) break;
      proposal_->said[size_t(rank)] = true;
      advance(out);
      break;
    case Word::kRefused:
      if (!mine || c.higher <= c.ballot) break;
      pace_.round = std::max(pace_.round, c.higher.round);
      yield_to(c.higher);
      break;
    case Word::kDecided:
    case Word::kHere:
      break;
  }
}

// Somebody else proposes: it is left some time before this member tries again.
void Succession::yield_to(const Ballot& b) {
  if (proposal_ && proposal_->ballot < b) {
    proposal_.reset();
    ++pace_.attempts;
  }
  pace_.attempts = std::max(pace_.attempts, 1);
  pace_.since = clock_;
}

void Succession::hear_prepare(MemberId from, const Ballot& b, Letters& out) {
  Content answer = content(b < promised_ ? Word::kRefused : Word::kPromise);
  answer.ballot = b;
  if (b < promised_) {
    answer.higher = promised_;
    return post(from, std::move(answer), out);
  }
  if (b > promised_ && from != me_) yield_to(b);
  promised_ = b;
  answer.promise = own_;
  for (const auto& [id, m] : waiting_)
    if (!absent_.count(id)) answer.promise.waiting.push_back(m);
  post(from, std::move(answer), out);
}

void Succession::hear_promise(int rank, Content& c, Letters& out) {
  proposal_->said[size_t(rank)] = true;
  proposal_->promises[size_t(rank)] = std::make_unique<Promise>(std::move(c.promise));
  advance(out);
}

void Succession::hear_accept(MemberId from, Content& c, Letters& out) {
  Content answer = content(c.ballot < promised_ ? Word::kRefused : Word::kAccepted);
  answer.ballot = c.ballot;
  if (c.ballot < promised_) {
    answer.higher = promised_;
  } else {
    if (c.ballot > promised_ && from != me_) yield_to(c.ballot);
    promised_ = c.ballot;
    own_.vote = Vote{c.ballot, std::move(c.view)};
  }
  post(from, std::move(answer), out);
}

void Succession::hear_decided(MemberId from, View& v, Letters& out) {
  if (v.epoch == now_.epoch) {
    const int rank = now_.rank(from);
    if (rank >= 0) peers_[size_t(rank)].here = true;
    if (next_)
      out.push_back({from, next_->write()});
    else
      post(from, content(Word::kHere), out);
  }
  if (v.epoch <= (next_ ? *next_ : now_).epoch) return;
  // Survivors have promised in the epoch before. This one is behind and yet in it: it was a newcomer that was given up
  // before it came, and has knocked again.
  const int rank = v.rank(me_);
  if (rank >= 0 && v.epoch != now_.epoch + 1 && v.members[size_t(rank)].has_state) return;
  excluded_ = !v.has(me_);
  next_ = std::move(v);
  proposal_.reset();
}

// ---- proposing

std::vector<Letter> Succession::tick(double now) {
  Letters out;
  clock_ = now;
  if (next_) return out;
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
    if (peers_[r].dead || int(r) == rank_ || (peers_[r].here && !first)) continue;
    out.push_back({now_.members[r].id, bytes});
    all = all && peers_[r].here;
  }
  tell_pause_ = first ? options_.retry : std::min(2 * tell_pause_, kLongestPause);
  tell_at_ = all ? HUGE_VAL : clock_ + tell_pause_;
}

bool Succession::change_is_due() const {
  const auto gone = [](const Peer& p) { return p.suspected || p.dead || p.leaving; };
  const auto stays = [](const Peer& p) { return !p.dead && !p.leaving; };
  const auto comes = [&](const auto& w) { return !absent_.count(w.first); };
  if (std::none_of(peers_.begin(), peers_.end(), stays)) return false;
  return frozen() || std::any_of(peers_.begin(), peers_.end(), gone) ||
         std::any_of(waiting_.begin(), waiting_.end(), comes);
}

// The lowest of those that are not suspected proposes at once. After somebody's attempt, no two members wait equally
// long, and the longer the more attempts have failed.
double Succession::delay() const {
  const int before = int(std::count_if(peers_.begin(), peers_.begin() + rank_,
                                       [](const Peer& p) { return !p.suspected && !p.dead; }));
  const double turns = std::min(before, kMostTurns);
  if (pace_.attempts == 0) return options_.patience * turns;
  const double place = double(rank_) / double(peers_.size());
  return options_.patience * (1 + turns + place) * std::exp2(std::min(pace_.attempts - 1, kMostDoublings));
}

void Succession::propose(Letters& out) {
  proposal_.emplace();
  proposal_->ballot = {std::max(promised_.round, pace_.round) + 1, me_};
  proposal_->began = proposal_->sent = clock_;
  proposal_->promises.resize(peers_.size());
  proposal_->said.assign(peers_.size(), false);
  ask(content(Word::kPrepare), out);
}

void Succession::repeat(Letters& out) {
  proposal_->sent = clock_;
  Content c = content(proposal_->value ? Word::kAccept : Word::kPrepare);
  if (proposal_->value && options_.has_register) proposal_->said.assign(peers_.size(), true);  // nobody is asked
  if (proposal_->value) c.view = *proposal_->value;
  ask(c, out);
}

bool Succession::quorum() const {
  Census c{.members = int(peers_.size()), .has_register = options_.has_register};
  c.all_others = true;
  for (size_t r = 0; r < peers_.size(); ++r) {
    c.said += proposal_->said[r];
    c.dead += peers_[r].dead;
    c.all_others = c.all_others && (peers_[r].dead || proposal_->said[r]);
  }
  return rules_.quorum(c);
}

bool Succession::awaits_somebody() const {
  if (clock_ - proposal_->began >= options_.grace) return false;
  for (size_t r = 0; r < peers_.size(); ++r)
    if (!proposal_->said[r] && !peers_[r].suspected && !peers_[r].dead) return true;
  return false;
}

void Succession::advance(Letters& out) {
  if (proposal_->value && options_.has_register) return;  // it is asked
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

// Those who promised and stay, then those who wait. The state is that of the fewest steps completed among them.
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

void Succession::decide(View v, Letters& out) {
  const std::string bytes = v.write();
  const auto tell = [&](MemberId m) {
    if (m != me_) out.push_back({m, bytes});
  };
  for (const View::Member& m : now_.members) tell(m.id);
  for (const View::Member& m : v.members)
    if (!now_.has(m.id)) tell(m.id);
  excluded_ = !v.has(me_);
  next_ = std::move(v);
  proposal_.reset();
}

// ---- the register

std::optional<View> Succession::wants_register() const {
  if (!options_.has_register || !proposal_) return {};
  return proposal_->value;
}

std::vector<Letter> Succession::register_says(const View& v) {
  Letters out;
  if (!next_ && v.epoch == now_.epoch + 1) decide(v, out);
  return out;
}

}  // namespace skein::comm
