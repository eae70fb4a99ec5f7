// FailureDetector: which members of an epoch are lost, as the transports by which they are reached show it.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "comm/clock.h"
#include "comm/membership/routes.h"

namespace skein::comm {

// For one thread.
class FailureDetector {
 public:
  enum class Finding : uint8_t {
    kThere,   // it can be reached
    kLost,    // by no route
    kWrites,  // but letters of it have come since, by a link that was mended or since it has woken
    kGone     // its process has certainly ended, or it has said goodbye
  };
  // `is_gone`: whether the process of a card has certainly ended; none: that is never known.
  explicit FailureDetector(std::function<bool(const std::string& card)> is_gone)
      : is_gone_(std::move(is_gone)) {}

  void heard(MemberId m) { heard_[m] = Clock::now(); }
  // `is_past`: whether the epoch of a view is over. It may take the time that is_gone() takes.
  Finding find(MemberId, const Routes&, const std::function<bool(const View&)>& is_past);
  // Of one whom no route reaches yet. False if it was asked too short a time ago.
  bool is_gone(const std::string& card);

 private:
  bool has_written_since(MemberId, Clock::time_point) const;

  struct Asked {
    Clock::time_point next;
    Clock::duration pause{};
  };
  const std::function<bool(const std::string& card)> is_gone_;
  // When the last letter of a member came, and since when all routes to it are lost.
  std::map<MemberId, Clock::time_point> heard_, lost_since_;
  std::map<std::string, Asked> asked_;  // by card: whether it is gone
};

}  // namespace skein::comm
