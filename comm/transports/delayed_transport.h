// Delayed transport: a bad network over any good one, seeded, on a clock of its own that no one waits for.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "comm/mailbox.h"
#include "comm/transport.h"

namespace skein::comm {

// What the network does, in seconds and bytes of virtual time. Draws are pure functions of (seed, sender,
// receiver, number of the message), so a run repeats whatever the scheduling.
struct Weather {
  uint64_t seed = 0;
  double latency = 0, jitter = 0;  // of each message: latency + uniform [0, jitter)
  double bandwidth = 0;            // bytes per second out of each rank; 0: infinite
  double loss = 0;                 // probability that a transmission is lost; it is repeated until one is not
  double retry = 0.01;             // after so long
  double duplication = 0;          // probability that a message comes twice
};

// Messages come late, in another order, twice; each still counts once. Wraps `inner`, whose other users it
// does not disturb. Every rank of a world must wrap its own. Virtual time passes by spend(), and by waiting
// for a message until it is there; waiting never passes real time for what has already been sent.
// Thread-safe.
class DelayedTransport final : public Transport {
 public:
  DelayedTransport(std::unique_ptr<Transport> inner, const Weather&);
  ~DelayedTransport() override;

  double now() const override;  // this rank's virtual clock, seconds
  void spend(double seconds);   // work that takes so long
  // So far: transmissions that had to be repeated, copies dropped on arrival, messages that overtook an
  // earlier one.
  struct Counts {
    int64_t lost = 0, duplicates = 0, overtaken = 0;
  };
  Counts counts() const;

  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Endpoint& to(Rank) override;
  Mailbox& mailbox() override { return box_; }
  void progress() override;
  void wait(const Key&, Clock::time_point until) override;
  bool ordered() const override { return false; }
  void fail() override { inner_->fail(); }
  std::string describe() const override { return "delayed over\n" + inner_->describe(); }

 private:
  class Door;
  struct Link {  // one direction between two ranks
    int64_t sent = 0;
    int64_t next_new = 0;     // all numbers below have come
    std::set<int64_t> early;  // numbers above it that have
    int64_t latest = -1;      // the highest delivered
  };
  void collect();  // from inner into late_
  void deliver_due();
  bool first_time(Link&, int64_t number);

  const std::unique_ptr<Transport> inner_;
  const Weather weather_;
  Mailbox box_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<Link> links_;
  std::multimap<double, std::pair<int64_t, Message>> late_;  // by arrival: number and message
  double now_ = 0, free_at_ = 0;  // free_at_: when our end of the network has sent what it was given
  Counts counts_;
};

}  // namespace skein::comm
