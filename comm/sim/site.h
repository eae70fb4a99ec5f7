// Site: the machines, hosts and switches of a simulated world, and what messages and computations
// use of them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "comm/sim/fluid.h"
#include "comm/sim/shared_rate.h"

namespace skein::comm::sim {

// Rates are bytes a second, 0: without bound. Hosts hang at a forest of switches or, if there are none, at
// one that bounds nothing.
struct SitePlan {
  struct Machine {
    std::string name;
    double cores = 0;  // shared by the workers that compute at the same moment; 0: as many as they like
  };
  struct Switch {
    std::string name;
    int above = -1;   // the switch that it hangs at; -1: none
    double rate = 0;  // of all that goes through it
    double up = 0;    // to the one above, in each direction
    double latency = 0;
  };
  struct Host {
    std::string name;
    int machine = -1;  // -1: one of its own, without bound
    int at = -1;       // its switch
    int workers = 1;
    double rate = 0;     // in each direction
    double latency = 0;  // from it to its switch, and back
  };
  // A bound on the way between two hosts in each direction, beside all bounds above, and its added latency.
  struct Link {
    int a = 0, b = 0;
    double rate = 0, latency = 0;
  };
  std::vector<Machine> machines;
  std::vector<Switch> switches;
  std::vector<Host> hosts;
  std::vector<Link> links;
  double message = 0;  // seconds of its sender that a message takes, one after the other,
  double byte = 0;     // and each of its bytes
  double work = 0;     // seconds of a core that a byte costs the hosts of its two ends, half each,
  // if it is more, while nothing flows the other way between the two, on which acknowledgments could ride
  double work_one_way = 0;
  double goodput = 1;      // share of every rate that is left for payloads and headers
  SharedRate shared = {};  // what is left of that while messages share a cable, in one direction or in both
  int workers() const;     // of all hosts
  std::vector<int> above(int host) const;  // the switches from a host upwards
};

// Throws Error that names two hosts between which there is no way.
void check_connected(const SitePlan&);

// Work of so many seconds, by a thread of a world.
void spend(double seconds);

class Site {
 public:
  Site(Baton&, const SitePlan&);  // outlived by the baton
  struct Path {
    std::vector<size_t> through;  // resources of fluid(); empty: a message is no flow
    double latency = 0;
  };
  Path path(int from, int to) const;  // between hosts
  // Workers live on the hosts in order, a server beside them on the first one.
  int host_of(int rank) const { return size_t(rank) < host_of_.size() ? host_of_[size_t(rank)] : 0; }
  const SitePlan& plan() const { return plan_; }
  Fluid& fluid() { return fluid_; }
  // Work that takes the calling thread so many seconds when it has so many cores of this host to itself.
  // Threads that compute there at the same time share them.
  void compute(int host, double seconds, double cores);
  // The same beside all threads, on one core; calls `done` as an event. Returns whether there is anything to
  // do: not where cores are without bound.
  bool work(int host, double seconds, std::function<void()> done);

 private:
  using Shared = std::optional<size_t>;
  Shared cores(double n) { return n > 0 ? Shared(fluid_.add(n)) : Shared(); }
  Shared link(double rate);
  std::pair<Shared, Shared> cable(double rate);  // both directions
  const SitePlan plan_;
  Fluid fluid_;
  std::vector<int> host_of_;
  std::vector<Shared> cores_, out_, in_, fabric_, up_, down_;
  struct Between {
    Shared rate;
    double latency = 0;
  };
  std::map<std::pair<int, int>, Between> between_;  // from one host to another
};

}  // namespace skein::comm::sim
