// Succession: what a member knows, what it answers, and how it learns the outcome. Its proposals
// are in proposing.cc.
#include "comm/membership/succession.h"

#include <algorithm>
#include <utility>

#include "engine/base.h"

namespace skein::comm {

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
  if (r >= 0 && r != rank_ && !std::exchange(peers_[size_t(r)].suspected, true)) stop_yielding_to(m);
}

void Succession::trust(MemberId m) {
  const int r = now_.rank(m);
  if (r < 0) absent_.erase(m);
  if (r >= 0) peers_[size_t(r)].suspected = false;
}

void Succession::prove_dead(MemberId m) {
  const int r = now_.rank(m);
  CHECK(r != rank_, "a member cannot prove its own death");
  if (r >= 0 && !std::exchange(peers_[size_t(r)].dead, true)) stop_yielding_to(m);
  if (r < 0) absent_.insert(m), waiting_.erase(m);
}

void Succession::never_came(MemberId m) {
  const int r = now_.rank(m);
  CHECK(r < 0 || (r != rank_ && !peers_[size_t(r)].here), "it has begun the epoch:", m);
  if (r >= 0) peers_[size_t(r)].never = true;
}

void Succession::leaves(MemberId m) {
  const int r = now_.rank(m);
  if (r >= 0) peers_[size_t(r)].leaving = true;
  if (r < 0) absent_.insert(m), waiting_.erase(m);
  if (r == rank_) own_.leaving = true;
}

void Succession::joins(const View::Member& m) {
  if (now_.has(m.id) || waiting_.size() == kMostMembers || m.card.size() > kLongestCard) return;
  waiting_[m.id] = {m.id, m.card, false};
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

void Succession::card(std::string card) {
  CHECK(card.size() <= kLongestCard, card.size());
  own_.card = std::move(card);
}

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

std::vector<Letter> Succession::receive(MemberId from, const std::string& bytes) {
  Letters out;
  std::optional<Content> c = Content::read(bytes);
  if (!c || from == me_) {
    ++unreadable_;
    return out;
  }
  if (c->word == Word::kEnded) {
    hear_ended(c->end);
  } else if (ended_) {
    out.push_back({from, ended_->write()});
  } else if (c->word == Word::kDecided) {
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
    case Word::kEnded:
      break;
  }
}

// Another member proposes: it gets some time before this member tries again.
void Succession::yield_to(const Ballot& b) {
  if (proposal_ && proposal_->ballot < b) {
    proposal_.reset();
    ++pace_.attempts;
  }
  pace_.attempts = std::max(pace_.attempts, 1);
  pace_.leaves_to = b.by;
  pace_.since.reset();
}

// It got time to complete its attempt, and is lost meanwhile.
void Succession::stop_yielding_to(MemberId m) {
  if (pace_.leaves_to != m) return;
  pace_.leaves_to = 0;
  pace_.attempts = 0;
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
  // Survivors have promised in the epoch before. This one is behind and yet in it: it was a newcomer that was
  // given up before it came, and has knocked again.
  const int rank = v.rank(me_);
  if (rank >= 0 && v.epoch != now_.epoch + 1 && v.members[size_t(rank)].has_state) return;
  excluded_ = !v.has(me_);
  next_ = std::move(v);
  proposal_.reset();
}

// ---- the outcome

void Succession::hear_ended(const End& e) {
  if (!ended_) ended_ = e;
  proposal_.reset();
}

std::vector<Letter> Succession::end(const End& e) {
  hear_ended(e);
  Letters out;
  const std::string bytes = ended_->write();
  for (const View::Member& m : now_.members)
    if (m.id != me_) out.push_back({m.id, bytes});
  return out;
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

std::optional<View> Succession::wants_register() const {
  if (!options_.has_register || !proposal_) return {};
  return proposal_->value;
}

std::vector<Letter> Succession::register_says(const View& v) {
  Letters out;
  if (!next_ && !ended_ && v.epoch == now_.epoch + 1) decide(v, out);
  return out;
}

}  // namespace skein::comm
