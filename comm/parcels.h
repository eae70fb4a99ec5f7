// Parcels: the messages that have come whole to a rank and wait for a taker.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <unordered_map>

#include "comm/transport.h"

namespace skein::comm {

inline constexpr Rank kAnyone = -1;

// Names a message. from = kAnyone and step = kAnyStep match all.
struct Key {
  uint32_t communicator = 0;
  Rank from = kAnyone;
  Tag tag = 0;
  int64_t step = kAnyStep;
  auto operator<=>(const Key&) const = default;
};
bool matches(const Key& wanted, const Key&);
inline Key key_of(const Header& h) { return {h.communicator, h.from, h.tag, h.step}; }

// A mailbox's lock guards it.
class Parcels {
 public:
  // Holds up to `bound` bytes of each sender; one message always fits.
  explicit Parcels(int64_t bound) : bound_(bound) {}

  void add(Message);
  bool has(const Key& k) { return find(k) != waiting_.end(); }
  // The oldest that matches, if there is one.
  std::optional<Message> take(const Key&);
  // Whether so many bytes may still be added.
  bool room(Rank from, int64_t bytes) const;
  // The smallest step after `key.step` that waits under the same communicator, sender and tag. None if the
  // message of this very key does.
  std::optional<int64_t> later_step(const Key&) const;
  // Names the first few of a sender, for the message of a Timeout.
  std::string list(uint32_t communicator, Rank from) const;
  int64_t arrivals() const { return arrivals_; }  // added so far; needs no lock

 private:
  struct Parcel {
    Message message;
    int64_t arrival = 0;
  };
  using Queues = std::map<Key, std::deque<Parcel>>;
  Queues::iterator find(const Key&);

  const int64_t bound_;
  Queues waiting_;
  std::unordered_map<Rank, int64_t> held_;  // bytes per sender; none: 0
  std::atomic<int64_t> arrivals_{0};
};

}  // namespace skein::comm
