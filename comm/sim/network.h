// Network: when messages between workers of a simulated world arrive, and which links are cut.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <unordered_map>

#include "comm/sim/site.h"

namespace skein::comm::sim {

// What the network does, in bytes and seconds. Random draws are pure functions of (seed, sender, receiver,
// number of the message).
struct Weather {
  uint64_t seed = 0;
  double latency = 0, jitter = 0;  // each message takes latency + uniform [0, jitter)
  double bandwidth = 0;            // bytes per second out of each worker; 0: infinite
  double loss = 0;                 // probability that a transmission is lost and repeated
  double retry = 0.01;             // seconds until it is repeated
  double duplication = 0;          // probability that a message comes twice
  bool overtaking = false;         // a late message does not hold up those that the sender sent after it
};

// Transmissions repeated, copies dropped on arrival, and earlier messages overtaken so far.
struct Counts {
  int64_t lost = 0, duplicates = 0, overtaken = 0;
};

// Workers are those of the baton. What is on its way over a link when it is cut waits there until it is
// mended, as TCP repeats it.
class Network {
 public:
  using Worker = Baton::Worker;
  Network(Baton&, const Weather&);
  // From now on messages share the links of this site, beside what the weather does to them: those of a
  // sender to one receiver flow one after the other, at their fair rate.
  void flow_through(Site& s) { site_ = &s; }
  // Calls `arrive` once, as an event that the receiver hears. Through a site, messages of rounds go before
  // those of younger rounds (kRounds), wherever they share something.
  void send(Worker from, Worker to, double bytes, std::optional<int64_t> round, std::function<void()> arrive);
  // The same for what follows all that has been sent on that link, however late it is.
  void send_last(Worker from, Worker to, std::function<void()> arrive);
  // A datagram: what is lost or cut off does not come, what is doubled comes twice, and there is no order.
  void send_datagram(Worker from, Worker to, double bytes, std::function<void()> arrive);
  void cut(Worker, Worker);   // both directions, once more
  void mend(Worker, Worker);  // undoes one of the cuts between the two
  bool reaches(Worker from, Worker to) const { return !cut_.count({from, to}); }
  bool is_cut() const { return !cut_.empty(); }  // anywhere
  const Weather& weather() const { return weather_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Load {  // on its way through the site
    double bytes;
    std::optional<int64_t> round;
    std::function<void()> through;
  };
  using Ends = std::pair<Worker, Worker>;
  struct Link {  // one direction between two workers
    Ends ends;
    int64_t sent = 0;
    int64_t latest = -1;             // the highest number that has come
    Clock::time_point last{};        // when all that was sent so far will have come
    std::optional<Site::Path> path;  // through the site
    std::list<Load> loads;           // that have not flowed yet; the first one flows
    int flows = 0;                   // of the first one and of its work, that have not ended
    double one_way = 0;              // bytes of the first one that nothing has answered yet
    int64_t datagrams = 0;
    std::vector<std::function<void()>> held;  // by a cut, in order of arrival
  };
  Clock::time_point& free_at(Worker);  // when the network has taken what a worker gave it
  Clock::time_point taken(Worker from, double bytes);
  void deliver(Link&, int64_t number, Clock::time_point leaves, std::function<void()> arrive);
  void load(Link&, Clock::time_point from, Load);
  void add(Link&, Load);
  void flow(Link&);
  double work(Link&, double bytes);  // seconds of a core, for both ends
  Link& link(Ends);                  // stays where it is
  const Site::Path& path(Link&);
  int host_of(Worker) const;
  void carry(Link&, Clock::time_point, std::function<void()> arrive);

  Baton& baton_;
  const Weather weather_;
  Site* site_ = nullptr;
  struct HashOfEnds {
    size_t operator()(const Ends& e) const { return size_t(e.first << 32 ^ e.second) * 0x9E3779B97F4A7C15u; }
  };
  std::unordered_map<Ends, Link, HashOfEnds> links_;
  std::vector<Clock::time_point> free_at_;
  std::map<Ends, int> cut_;  // how often
  Counts counts_;
};

// Longer than any world lasts, and short enough that nanoseconds of several such times can be added.
inline constexpr double kFarOff = 1e9;

inline Clock::duration in_seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(s, -kFarOff, kFarOff)));
}

}  // namespace skein::comm::sim
