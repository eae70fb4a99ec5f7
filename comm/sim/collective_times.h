// CollectiveTimes: when collectives among many members end, by closed forms instead of their messages.
#pragma once
#include "comm/sim/network.h"
#include "comm/transport.h"
#include "engine/random.h"

namespace skein::comm::sim {

// Each form follows what comm/communicator sends: a sum is two exchanges in which all send to all (one, if it
// is small), a broadcast is a binomial tree, a gather goes straight to the root, a barrier is a
// dissemination. An exchange lasts as long as the most loaded of the links needs for those who come last;
// what shares these links besides is not seen. Times and latencies are seconds, and `came` and what is
// returned are by member.
class CollectiveTimes {
 public:
  // `hosts` of the members, of the site; without a site each has a link of its own, of
  // the weather's bandwidth. The site outlives this.
  CollectiveTimes(const Site*, const Weather&, const std::vector<int>& hosts);
  // When all have it. `bytes`: of the vector; `draw`: of this collective's chances. Sums that are under way
  // at the same time, as slices of a gradient are, have the links one after the other.
  double sum(const std::vector<double>& came, double bytes, bool one_hop, const Draw&);
  double gather(const std::vector<double>& came, const std::vector<double>& bytes, Rank root,
                const Draw&) const;
  std::vector<double> broadcast(const std::vector<double>& came, double bytes, Rank root, const Draw&) const;
  std::vector<double> barrier(const std::vector<double>& came, const Draw&) const;

 private:
  struct Link {  // that members share
    double rate;
    double pairs;               // of a member and another one whose messages use it
    std::vector<Rank> senders;  // whose messages do; empty: those of all
    double each = 0;            // pairs that each of them adds
  };
  struct Exchange {
    double sent, there;  // when the links are free again, and when all have what was sent to them
  };
  Exchange exchange(const std::vector<double>& came, double bytes, const Draw&, uint64_t chance) const;
  double rate_of(Rank) const;
  double latency(Rank from, Rank to) const;
  double handing_over(double messages, double bytes) const;
  double delay(double messages, const Draw&, uint64_t chance) const;
  void add_switches(const SitePlan&);
  template <class F>
  void each_on_way(Rank from, Rank to, F) const;

  const Site* site_;
  const SitePlan* plan_;
  const Weather weather_;
  const std::vector<int> hosts_;
  const double n_;
  std::vector<Link> links_;
  double latency_ = 0;  // the longest between two of the members
  double header_ = 0;   // bytes of each message beside its payload
  double free_ = 0;     // when the links have carried the sums so far
};

}  // namespace skein::comm::sim
