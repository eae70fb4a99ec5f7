// SuccessionChain: what goes along from one Succession to the next.
#include "comm/membership/succession_chain.h"

#include <utility>

namespace skein::comm {

SuccessionChain::SuccessionChain(MemberId me, std::string card, const View& first, HasRegister has_register,
                                 std::unique_ptr<Succession> begun)
    : me_(me),
      card_(std::move(card)),
      has_register_(std::move(has_register)),
      current_(begun ? std::move(begun) : std::make_unique<Succession>(me_, first, options(first))) {
  current_->card(card_);
}

Succession::Options SuccessionChain::options(const View& v) const {
  return {.has_register = has_register_ && has_register_(v)};
}

bool SuccessionChain::advance() {
  if (current_->excluded()) excluded_ = true;
  if (!current_->next() || excluded_) return false;
  decided_ = current_->next();
  const std::vector<View::Member> waiting = current_->waiting();
  const std::optional<End> end = current_->ended();
  current_ = std::make_unique<Succession>(me_, *decided_, options(*decided_));
  for (const View::Member& m : waiting) current_->joins(m);
  if (end) (void)current_->end(*end);
  current_->card(card_);
  for (const MemberId m : dead_) current_->prove_dead(m);
  return true;
}

void SuccessionChain::bury(MemberId m) {
  dead_.insert(m);
  current_->prove_dead(m);
}

}  // namespace skein::comm
