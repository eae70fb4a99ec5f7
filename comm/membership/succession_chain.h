// SuccessionChain: one member's Successions, of which each is of the view that the one before has decided.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "comm/membership/succession.h"

namespace skein::comm {

// Not thread-safe.
class SuccessionChain {
 public:
  using HasRegister =
      std::function<bool(const View&)>;  // whether one decides in the epoch of a view; empty: no
  // `begun`: the first Succession, if another chain has released it; otherwise it is that of `first`.
  SuccessionChain(MemberId me, std::string card, const View& first, HasRegister,
                  std::unique_ptr<Succession> begun = {});

  // The Succession of the latest view that this member is in.
  Succession* operator->() { return current_.get(); }
  const Succession* operator->() const { return current_.get(); }
  // Goes on to the view that the current Succession has decided, if it has. Members of that view choose the
  // next one from then on, in case they do not come together. Returns whether it has gone on.
  bool advance();
  const std::optional<View>& decided() const { return decided_; }  // the latest
  bool excluded() const { return excluded_; }                      // from a view that was decided; final
  // Whether a later view than this one has been decided.
  bool is_past(const View& v) const { return excluded_ || (decided_ && decided_->epoch > v.epoch); }

  // Its process has ended. Known of it in all later Successions, too.
  void bury(MemberId);
  bool is_dead(MemberId m) const { return dead_.count(m) > 0; }

  // Whether this view is the one whose successor is looked for.
  bool is_at(const View& v) const { return !excluded_ && current_->now().epoch == v.epoch; }
  // The current Succession, for another chain; this one ends.
  std::unique_ptr<Succession> release() { return std::move(current_); }

 private:
  Succession::Options options(const View&) const;

  const MemberId me_;
  const std::string card_;
  const HasRegister has_register_;
  std::unique_ptr<Succession> current_;
  std::optional<View> decided_;
  std::set<MemberId> dead_;
  bool excluded_ = false;
};

}  // namespace skein::comm
