// FailureDetector: what several transports show of one member.
#include "comm/membership/failure_detector.h"

#include <algorithm>

#include "comm/mailbox.h"

namespace skein::comm {
namespace {

constexpr auto kFresh = std::chrono::seconds(2);  // how long a letter shows that its sender is there

}  // namespace

// Who has said goodbye in an epoch that is over is in the next one already. Who can be reached by any route
// is not lost.
FailureDetector::Finding FailureDetector::find(MemberId m, const Routes& routes,
                                               const std::function<bool(const View&)>& is_past) {
  Finding all = Finding::kThere;
  for (const Route& w : routes) {
    const Rank r = w.view.rank(m);
    if (r < 0) continue;
    const Membership& seen = w.transport->mailbox().membership();
    if (seen.alive(r)) {
      all = Finding::kThere;
      break;
    }
    if (!seen.lost(r))
      all = is_past(w.view) ? all : Finding::kGone;
    else if (all != Finding::kGone)
      all = seen.ended(r) && is_gone(w.view.members[size_t(r)].card) ? Finding::kGone : Finding::kLost;
  }
  if (all == Finding::kThere) lost_since_.erase(m);
  if (all != Finding::kLost) return all;
  const Clock::time_point since = lost_since_.try_emplace(m, Clock::now()).first->second;
  return has_written_since(m, since) ? Finding::kWrites : Finding::kLost;
}

bool FailureDetector::has_written_since(MemberId m, Clock::time_point since) const {
  const auto heard = heard_.find(m);
  return heard != heard_.end() && heard->second > since && Clock::now() - heard->second <= kFresh;
}

// A process that ends lets go of its connections some milliseconds before it lets go of its door. One that
// lives on is asked less and less often.
bool FailureDetector::is_gone(const std::string& card) {
  constexpr std::chrono::milliseconds kSoon(2), kSeldom(1000);
  Asked& asked = asked_[card];
  if (!is_gone_ || Clock::now() < asked.next) return false;
  asked.pause = std::clamp<Clock::duration>(2 * asked.pause, kSoon, kSeldom);
  asked.next = Clock::now() + asked.pause;
  try {
    return is_gone_(card);
  } catch (const Error&) { return false; }  // it cannot be asked now, as where no descriptor is left
}

}  // namespace skein::comm
