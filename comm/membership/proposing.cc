// Succession: when a member proposes, whom it asks, and what follows from a quorum.
#include <algorithm>
#include <cmath>

#include "comm/membership/succession.h"

namespace skein::comm {
namespace {

constexpr double kLongestPause = 2;  // seconds between two reminders of the epoch to a member not heard in it

}  // namespace

std::vector<Letter> Succession::tick(double now) {
  Letters out;
  clock_ = now;
  outage_.hears_quorum(is_quorum(roll_.heard()), now);
  if (next_ || ended_) return out;
  tell_of_epoch(out);
  if (proposal_) {
    if (proposal_->since_asked(now) >= options_.retry) ask(out);
    if (proposal_) advance(out);
  } else if (!change_is_due()) {
    backoff_.nothing_is_due();
  } else if (const double place = double(roll_.rank()) / roll_.size();
             backoff_.is_time(now, options_.patience, roll_.in_front(), place)) {
    const uint64_t round = std::max(acceptor_.promised().round, backoff_.refused()) + 1;
    proposal_.emplace(Ballot{round, roll_.me()}, roll_.size(), now);
    ask(out);
  }
  return out;
}

// Each member says that it is here, and tells those not heard in this epoch that it has begun.
void Succession::tell_of_epoch(Letters& out) {
  if (clock_ < tell_at_) return;
  const bool first = tell_pause_ == 0;
  const std::string bytes = first ? content(Word::kHere).write() : now().write();
  bool all = true;
  for (int r = 0; r < roll_.size(); ++r) {
    if (!roll_[r].votes() || r == roll_.rank() || (roll_[r].here && !first)) continue;
    out.push_back({roll_.id(r), bytes});
    all = all && roll_[r].here;
  }
  tell_pause_ = first ? options_.retry : std::min(2 * tell_pause_, kLongestPause);
  tell_at_ = all ? HUGE_VAL : clock_ + tell_pause_;
}

bool Succession::change_is_due() const {
  return roll_.anybody_stays() && (frozen() || roll_.differs_from_view());
}

// Asks the members that have not said yes, this one last, since its own answer needs no letter. The others
// get kHere, since they may know the next epoch by now, and reply with it. Where a register decides, no
// member is asked for its vote.
void Succession::ask(Letters& out) {
  proposal_->ask(clock_);
  const std::optional<View>& value = proposal_->value();
  const bool at_register = value && options_.has_register;
  Content c = content(value ? Word::kAccept : Word::kPrepare);
  if (value) c.view = *value;
  const std::string bytes = c.write(), here = content(Word::kHere).write();
  const auto asks = [&](int rank) { return !at_register && !proposal_->said()[size_t(rank)]; };
  for (int r = 0; r < roll_.size(); ++r)
    if (r != roll_.rank() && roll_[r].votes()) out.push_back({roll_.id(r), asks(r) ? bytes : here});
  if (asks(roll_.rank())) post(roll_.me(), std::move(c), out);
}

bool Succession::is_quorum(const Answers& said) const {
  Census c = roll_.census(said);
  c.has_register = options_.has_register;
  return rules_.quorum(c);
}

void Succession::advance(Letters& out) {
  const bool has_value = proposal_->value().has_value();
  if (has_value && options_.has_register) return;  // the register is asked
  if (!is_quorum(proposal_->said())) return;
  if (has_value) return decide(*proposal_->value(), out);
  outage_.hears_quorum(true, clock_);
  const double retry = outage_.casts_doubt(clock_, options_.grace) ? options_.grace : options_.retry;
  if (roll_.awaits(proposal_->said(), proposal_->since_quorum(clock_), options_.grace, retry)) return;
  proposal_->choose(roll_, rules_.heeds_votes);
  if (proposal_->value() && !options_.has_register) ask(out);
}

}  // namespace skein::comm
