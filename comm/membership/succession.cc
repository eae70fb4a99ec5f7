// Succession: what a member knows, what it answers, and how it learns the outcome. Its proposals
// are in proposing.cc.
#include "comm/membership/succession.h"

#include <utility>

namespace skein::comm {

Succession::Succession(MemberId me, View now, Options options, Rules rules)
    : options_(options),
      rules_(rules),
      roll_(me, std::move(now)),
      acceptor_(roll_.now().members[size_t(roll_.rank())], roll_.now().step) {}

// ---- what is known

void Succession::suspect(MemberId m) {
  if (roll_.suspect(m)) backoff_.stop_yielding_to(m);
}

void Succession::prove_dead(MemberId m) {
  if (roll_.prove_dead(m)) backoff_.stop_yielding_to(m);
}

void Succession::leaves(MemberId m) {
  roll_.leaves(m);
  if (m == roll_.me()) acceptor_.leaves();
}

std::vector<View::Member> Succession::waiting() const {
  std::vector<View::Member> all;
  for (const auto& [id, m] : roll_.waiting())
    if (!next_ || !next_->has(id)) all.push_back(m);
  return all;
}

bool Succession::complete_step(int64_t steps, int64_t oldest) {
  if (frozen()) return false;
  acceptor_.complete_step(steps, oldest);
  return true;
}

// ---- letters

Content Succession::content(Word word) const {
  Content c;
  c.word = word, c.epoch = now().epoch;
  if (proposal_) c.ballot = proposal_->ballot();
  return c;
}

void Succession::post(MemberId to, Content c, Letters& out) {
  if (to == roll_.me())
    hear(to, roll_.rank(), c, out);
  else
    out.push_back({to, c.write()});
}

std::vector<Letter> Succession::receive(MemberId from, const std::string& bytes) {
  Letters out;
  std::optional<Content> c = Content::read(bytes);
  if (!c || from == roll_.me()) return out;
  if (c->word == Word::kEnded) {
    hear_ended(c->end);
  } else if (ended_) {
    out.push_back({from, ended_->write()});
  } else if (c->word == Word::kDecided) {
    hear_decided(from, c->view, out);
  } else if (c->epoch < now().epoch) {
    out.push_back({from, (next_ ? *next_ : now()).write()});
  } else if (c->epoch > now().epoch) {
    if (!next_) post(from, content(Word::kHere), out);
  } else if (next_) {
    if (c->word == Word::kPrepare || c->word == Word::kAccept || c->word == Word::kHere)
      out.push_back({from, next_->write()});
  } else if (const int rank = now().rank(from); rank >= 0) {
    hear(from, rank, *c, out);
  }
  return out;
}

// A word of this epoch, before its successor is known.
void Succession::hear(MemberId from, int rank, Content& c, Letters& out) {
  roll_.is_here(rank);
  const bool mine = proposal_ && c.ballot == proposal_->ballot();
  switch (c.word) {
    case Word::kPrepare:
      if (c.ballot.by == from) hear_prepare(from, c.ballot, out);
      break;
    case Word::kPromise:
      if (!mine || proposal_->value()) break;
      proposal_->promised(rank, std::move(c.promise));
      advance(out);
      break;
    case Word::kAccept:
      if (c.ballot.by == from && c.view.epoch == now().epoch + 1) hear_accept(from, c, out);
      break;
    case Word::kAccepted:
      if (!mine || !proposal_->value()) break;
      proposal_->accepted(rank);
      advance(out);
      break;
    case Word::kRefused:
      if (!mine || c.higher <= c.ballot) break;
      backoff_.refused_for(c.higher);
      yield_to(c.higher);
      break;
    case Word::kDecided:
    case Word::kHere:
    case Word::kEnded:
      break;
  }
}

void Succession::yield_to(const Ballot& b) {
  const bool cut_short = proposal_ && proposal_->ballot() < b;
  if (cut_short) proposal_.reset();
  backoff_.yield_to(b, cut_short);
}

bool Succession::follow(MemberId from, const Ballot& b) {
  if (b > acceptor_.promised() && from != roll_.me()) yield_to(b);
  return acceptor_.follow(b);
}

void Succession::refuse(MemberId from, const Ballot& b, Letters& out) {
  Content answer = content(Word::kRefused);
  answer.ballot = b, answer.higher = acceptor_.promised();
  post(from, std::move(answer), out);
}

void Succession::hear_prepare(MemberId from, const Ballot& b, Letters& out) {
  if (!follow(from, b)) return refuse(from, b, out);
  Content answer = content(Word::kPromise);
  answer.ballot = b, answer.promise = acceptor_.own(), answer.promise.waiting = roll_.newcomers();
  post(from, std::move(answer), out);
}

void Succession::hear_accept(MemberId from, Content& c, Letters& out) {
  if (!follow(from, c.ballot)) return refuse(from, c.ballot, out);
  acceptor_.vote(std::move(c.view));
  Content answer = content(Word::kAccepted);
  answer.ballot = c.ballot;
  post(from, std::move(answer), out);
}

void Succession::hear_decided(MemberId from, View& v, Letters& out) {
  if (v.epoch == now().epoch) {
    const int rank = now().rank(from);
    if (rank >= 0) roll_.is_here(rank);
    if (next_)
      out.push_back({from, next_->write()});
    else
      post(from, content(Word::kHere), out);
  }
  if (v.epoch <= (next_ ? *next_ : now()).epoch) return;
  // Survivors have promised in the epoch before. This one is behind and yet in it: it was a newcomer that was
  // given up before it came, and has knocked again.
  const int rank = v.rank(roll_.me());
  if (rank >= 0 && v.epoch != now().epoch + 1 && v.members[size_t(rank)].has_state) return;
  excluded_ = !v.has(roll_.me());
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
  for (const View::Member& m : now().members)
    if (m.id != roll_.me()) out.push_back({m.id, bytes});
  return out;
}

void Succession::decide(View v, Letters& out) {
  const std::string bytes = v.write();
  const auto tell = [&](MemberId m) {
    if (m != roll_.me()) out.push_back({m, bytes});
  };
  for (const View::Member& m : now().members) tell(m.id);
  for (const View::Member& m : v.members)
    if (!now().has(m.id)) tell(m.id);
  excluded_ = !v.has(roll_.me());
  next_ = std::move(v);
  proposal_.reset();
}

std::optional<View> Succession::wants_register() const {
  if (!options_.has_register || !proposal_) return {};
  return proposal_->value();
}

std::vector<Letter> Succession::register_says(const View& v) {
  Letters out;
  if (!next_ && !ended_ && v.epoch == now().epoch + 1) decide(v, out);
  return out;
}

}  // namespace skein::comm
