// Acceptor: promises and votes of one member.
#include "comm/membership/acceptor.h"

#include <utility>

#include "engine/base.h"

namespace skein::comm {

Acceptor::Acceptor(const View::Member& mine, int64_t step) {
  own_.completed = step, own_.card = mine.card;
  own_.oldest = mine.has_state ? step : kNoState;
}

bool Acceptor::follow(const Ballot& b) {
  if (b < promised_) return false;
  promised_ = b;
  return true;
}

void Acceptor::vote(View v) { own_.vote = Vote{promised_, std::move(v)}; }

void Acceptor::complete_step(int64_t steps, int64_t oldest) {
  CHECK(steps >= own_.completed && oldest <= steps, "steps are completed one after the other", steps);
  CHECK(!has_promised(), "a promise about a member's state stays true");
  own_.completed = steps, own_.oldest = oldest;
}

void Acceptor::restored() {
  if (own_.oldest == kNoState) own_.oldest = own_.completed;
}

void Acceptor::card(std::string card) {
  CHECK(card.size() <= kLongestCard, card.size());
  own_.card = std::move(card);
}

}  // namespace skein::comm
