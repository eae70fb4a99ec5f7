// Delayed transport: a simulated bad network over any transport, with a virtual clock and a seed.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "comm/mailbox.h"
#include "comm/transport.h"

namespace skein::comm {

// What the network does, in bytes and seconds of virtual time. Random draws are pure functions of (seed,
// sender, receiver, number of the message), so a run can be repeated whatever the scheduling.
struct Weather {
  uint64_t seed = 0;
  double latency = 0, jitter = 0;  // each message takes latency + uniform [0, jitter)
  double bandwidth = 0;            // bytes per second out of each rank; 0: infinite
  double loss = 0;                 // probability that a transmission is lost and repeated
  double retry = 0.01;             // seconds until it is repeated
  double duplication = 0;          // probability that a message comes twice
};

// Messages come late, in another order, or twice; each is still delivered once. Wraps `inner`, whose
// other users it does not disturb. Every rank of a world must wrap its own. Virtual time passes in
// spend(), and in waits for a message until it is there. A wait takes no real time if the message has
// already been sent. Thread-safe.
class DelayedTransport final : public Transport {
 public:
  DelayedTransport(std::unique_ptr<Transport> inner, const Weather&);
  ~DelayedTransport() override;

  double now() const override;  // this rank's virtual clock, seconds
  void spend(double seconds);   // simulates work that takes so long
  // How many transmissions were repeated, copies dropped on arrival, and earlier messages overtaken so far.
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
  class Peer;
  struct Link {  // one direction between two ranks
    int64_t sent = 0;
    int64_t next_new = 0;     // all lower numbers have come
    std::set<int64_t> early;  // higher numbers that have come
    int64_t latest = -1;      // the highest number delivered
  };
  void collect();  // moves arrivals from inner into late_
  void deliver_due();
  bool first_time(Link&, int64_t number);

  const std::unique_ptr<Transport> inner_;
  const Weather weather_;
  Mailbox box_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Link> links_;
  std::multimap<double, std::pair<int64_t, Message>> late_;  // number and message, by virtual time of arrival
  double now_ = 0, free_at_ = 0;  // free_at_: when the network has sent what this rank gave it
  Counts counts_;
};

}  // namespace skein::comm
