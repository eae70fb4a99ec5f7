// The way between two hosts goes up to the lowest switch above both, and down again.
#include "comm/sim/site.h"

#include <algorithm>
#include <numeric>

#include "comm/sim/network.h"
#include "engine/base.h"

namespace skein::comm::sim {

int SitePlan::workers() const {
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int n, const Host& h) { return n + h.workers; });
}

std::vector<int> SitePlan::above(int host) const {
  std::vector<int> chain;
  for (int s = hosts[size_t(host)].at; s >= 0; s = switches[size_t(s)].above) {
    CHECK(chain.size() < switches.size(), "switches hang at each other in a circle");
    chain.push_back(s);
  }
  return chain;
}

void check_connected(const SitePlan& p) {
  if (p.switches.empty()) return;
  const auto top = [&](size_t host) {
    const std::vector<int> chain = p.above(int(host));
    return chain.empty() ? -1 : chain.back();
  };
  for (size_t h = 0; h < p.hosts.size(); ++h)
    if (top(h) < 0 || top(h) != top(0))
      throw Error(text("there is no way from host ", p.hosts[0].name, " to host ", p.hosts[h].name));
}

Site::Site(Baton& b, const SitePlan& p) : plan_(p), fluid_(b) {
  check_connected(plan_);
  std::vector<Shared> of_machines;
  for (const SitePlan::Machine& m : plan_.machines) of_machines.push_back(cores(m.cores));
  for (const SitePlan::Host& h : plan_.hosts) {
    host_of_.insert(host_of_.end(), size_t(h.workers), int(cores_.size()));
    cores_.push_back(h.machine < 0 ? Shared() : of_machines[size_t(h.machine)]);
    const auto [out, in] = cable(h.rate);
    out_.push_back(out), in_.push_back(in);
  }
  for (const SitePlan::Switch& s : plan_.switches) {
    fabric_.push_back(link(s.rate));
    const auto [up, down] = cable(s.up);
    up_.push_back(up), down_.push_back(down);
  }
  for (const SitePlan::Link& l : plan_.links) {
    const auto [there, back] = cable(l.rate);
    between_[{l.a, l.b}] = {there, l.latency}, between_[{l.b, l.a}] = {back, l.latency};
  }
}

Site::Shared Site::link(double rate) {
  if (rate <= 0) return {};
  return plan_.shared.is_less() ? fluid_.add_lossy(rate * plan_.goodput) : fluid_.add(rate * plan_.goodput);
}

std::pair<Site::Shared, Site::Shared> Site::cable(double rate) {
  const std::pair<Shared, Shared> both(link(rate), link(rate));
  if (both.first && plan_.shared.is_less()) fluid_.oppose(*both.first, *both.second);
  return both;
}

void spend(double seconds) {
  CHECK(timeline_here, "only a thread of a simulated world spends time");
  CHECK(seconds >= 0, seconds);
  nap(in_seconds(seconds));
}

void Site::compute(int host, double seconds, double cores) {
  const Shared shared = cores_[size_t(host)];
  if (!shared) return spend(seconds);
  struct Computation {
    Fluid& fluid;
    Fluid::Flow flow = 0;
    bool done = false;
    Mutex mutex = {};
    Condition ended = {};
    ~Computation() { fluid.cancel(flow); }  // it has been killed
  } c{fluid_};
  c.flow = fluid_.begin({{*shared}, cores}, seconds * cores, [&] {
    c.done = true;
    c.ended.notify_all();
  });
  Condition::Lock lock(c.mutex);
  c.ended.wait(lock, [&] { return c.done; });
}

bool Site::work(int host, double seconds, std::function<void()> done) {
  const Shared shared = cores_[size_t(host)];
  if (!shared || seconds <= 0) return false;
  fluid_.begin({{*shared}, 1}, seconds, std::move(done));
  return true;
}

Site::Path Site::path(int from, int to) const {
  Path way;
  if (from == to) return way;
  const auto use = [&](const Shared& r) {
    if (r) way.through.push_back(*r);
  };
  const auto pass = [&](int s) {
    use(fabric_[size_t(s)]);
    way.latency += plan_.switches[size_t(s)].latency;
  };
  way.latency = plan_.hosts[size_t(from)].latency + plan_.hosts[size_t(to)].latency;
  use(out_[size_t(from)]);
  use(in_[size_t(to)]);
  if (const auto own = between_.find({from, to}); own != between_.end())
    use(own->second.rate), way.latency += own->second.latency;
  const std::vector<int> ups = plan_.above(from), downs = plan_.above(to);
  for (const int s : ups) {
    pass(s);
    if (std::find(downs.begin(), downs.end(), s) != downs.end()) break;
    use(up_[size_t(s)]);
  }
  for (const int s : downs) {
    if (std::find(ups.begin(), ups.end(), s) != ups.end()) break;
    pass(s);
    use(down_[size_t(s)]);
  }
  return way;
}

}  // namespace skein::comm::sim
