// Fluid: flows that share resources, links of a network or the cores of a machine, each at its
// max-min fair rate.
#pragma once
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/sim/baton.h"
#include "comm/sim/equal_shares.h"

namespace skein::comm::sim {

// What a flow uses, and the rate that it never exceeds. Flows of a lower turn have what they can use before
// those of a higher one.
struct Course {
  std::vector<size_t> through;  // resources, all distinct
  double most = std::numeric_limits<double>::infinity();
  int64_t turn = -1;
  double shared = 1;  // share that is left of a lossy resource while it is not alone there
};

// Of those of one turn, no flow can be faster without making one slower that is not faster than it: each
// either has its `most`, or goes through a resource that is used up and in which no other flow of its turn
// has a larger rate (Bertsekas and Gallager, Data Networks, 6.5.2).
std::vector<double> fair_rates(const std::vector<double>& capacities, const std::vector<Course>&);

// When a flow begins or ends, rates are computed again for all that share a resource with it, directly
// or through others. Where all of these are held by one resource and share nothing else, as at the link of a
// server, they are kept as EqualShares until one comes that is different.
class Fluid {
 public:
  using Flow = uint64_t;
  explicit Fluid(Baton& b) : baton_(b) {}
  Fluid(const Fluid&) = delete;

  size_t add(double capacity);  // a resource, in units a second
  // One of which less is left while several flows use it: the least Course::shared of them.
  size_t add_lossy(double capacity);
  // They are the two directions of one cable: a flow in one shares the other.
  void oppose(size_t a, size_t b);
  // Calls `done` as an event, when so many units have flowed.
  Flow begin(Course, double amount, std::function<void()> done);
  void cancel(Flow);  // if it still flows

 private:
  struct State {
    Course course;
    double left;  // as of `since`
    double rate = 0;
    Clock::time_point since;
    std::optional<Baton::Alarm> ends = {};
    std::function<void()> done;
    std::optional<size_t> evenly = {};  // the resource that holds it; then its rate and end are kept there
    uint64_t settled = 0;               // of settlings_, the last that has come to it
    bool has_changed = false;           // is in changed_
  };
  struct Even {
    EqualShares flows;
    int64_t turn;
    double most;  // the rate that none of them exceeds
    std::optional<Baton::Alarm> ends = {};
  };
  struct Resource {
    double capacity;
    bool is_lossy;
    std::optional<size_t> opposite = {};
    std::vector<Flow> flows = {};  // in order
    std::unique_ptr<Even> even = {};
    uint64_t settled = 0;  // as in State
    size_t place = 0;      // then, among the resources of those that are settled together
  };
  template <class F>
  void each_beside(const Resource&, F) const;  // calls f with the flows in it and in the opposite one
  double capacity_now(const Resource&) const;
  using Flows = std::unordered_map<Flow, State>;
  struct Together {  // flows that share resources, directly or through others
    std::vector<std::pair<Flow, State*>> flows;
    std::vector<size_t> resources;
  };
  Together connected_with(Flow);
  void settle();
  void settle(const Together&);
  void settle_soon(Flow);  // sets its rate, and those of all that are connected with it, if it still flows
  void retime(Flow, State&, double rate);
  void flow_until_now(State&) const;
  void end(Flow);
  void remove(Flows::iterator);
  static void leave(Resource&, Flow);
  // Of resources whose flows share them evenly.
  bool is_alone_but_in(size_t resource, const Course&, size_t itself) const;
  double most_but_in(size_t resource, const Course&) const;
  std::optional<size_t> even_place_for(const Course&) const;
  bool share_evenly(const Together&);
  void await_first(size_t resource);
  void remove_evenly(Flows::iterator);
  void dissolve(size_t resource);

  Baton& baton_;
  std::vector<Resource> resources_;
  Flows flows_;
  Flow begun_ = 0;
  std::vector<Flow> changed_;  // to be settled at this moment, when all that begins or ends now has done so
  uint64_t settlings_ = 0;
};

}  // namespace skein::comm::sim
