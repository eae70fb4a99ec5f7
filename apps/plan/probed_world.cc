// Steps become a pace and cores, round trips become rates and latencies.
#include "apps/plan/probed_world.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace skein::apps {
namespace {

using comm::LinkTimes;
using comm::sim::SitePlan;

constexpr double kCrowded = 1.02, kBurdened = 1.01;  // below these, steps take as long as they do alone
constexpr double kLess = 0.75;  // a link below this part of what its hosts do elsewhere is slow by itself

// One way between two: the time of a short message, and the seconds of each further byte.
struct Way {
  double latency = 0, byte = 0;
};

Way way_of(const std::vector<LinkTimes>& times, size_t at) {
  const LinkTimes &few = times.front(), &most = times.back();
  return {few.seconds[at],
          std::max(1e-12, (most.seconds[at] - few.seconds[at]) / double(most.bytes - few.bytes))};
}

// Whether messages make steps longer.
bool is_burden(const Probed& p) {
  double step = 0;
  for (const ProbedWorker& one : p.workers) step = std::max(step, one.step());
  return p.burden.seconds > (kBurdened - 1) * step;
}

// Machines are as wide as makes steps of all of their workers take what they took.
void add_hosts(const Probed& p, WorldFile& w) {
  std::map<std::string, int> machines;
  std::map<std::string, double> workers_of, steps_of;
  for (const ProbedWorker& one : p.workers)
    ++workers_of[one.machine], steps_of[one.machine] += one.computing();
  const double fronts = double(p.fronts.size());
  const double sent = fronts * p.neighbors() * double(p.burden.bytes),
               one_way = fronts * double(p.one_way.bytes);
  for (size_t r = 0; r < p.workers.size(); ++r) {
    const ProbedWorker& one = p.workers[r];
    const auto [machine, fresh] = machines.emplace(one.machine, int(machines.size()));
    const bool crowded = one.crowded > kCrowded, shared = crowded || is_burden(p);
    const double cores = workers_of[one.machine] / (crowded ? one.crowded : 1);
    if (fresh) w.site.machines.push_back({text(one.host), shared ? cores : 0});
    if (fresh && is_burden(p)) {  // the machine's share of all that is sent, by all of its cores
      w.site.work += p.burden.seconds * cores / sent;
      if (one_way > 0) w.site.work_one_way += p.one_way.seconds * cores / one_way;
    }
    // Who gets less of shared cores for a while gets more later.
    const double step = crowded ? steps_of[one.machine] / workers_of[one.machine] : one.computing();
    const double alone = step / one.crowded;
    if (r > 0 && one.network == p.workers[r - 1].network) {
      ++w.site.hosts.back().workers;
      w.speeds.back() = std::max(w.speeds.back(), alone);  // seconds, until set_pace()
      continue;
    }
    w.site.hosts.push_back({.name = one.host, .machine = machine->second, .workers = 1});
    w.speeds.push_back(alone);
  }
  if (w.site.hosts.size() != p.fronts.size())
    throw Error("the workers of a host have ranks that do not follow each other; start them host by host");
}

void set_pace(const Probed& p, WorldFile& w) {
  double step = 0, back = 0, spread = 0, byte = 0;
  for (const ProbedWorker& one : p.workers) {
    step += one.computing(), back += one.backward, byte += one.byte;
    spread += one.spread / double(p.workers.size());
  }
  w.pace.step = *std::max_element(w.speeds.begin(), w.speeds.end());
  w.pace.forward = std::clamp(1 - back / step, 0.0, 1.0);  // all but backward, during which messages travel
  for (double& speed : w.speeds) speed = w.pace.step / speed;
  w.pace.vector = w.pace.step * byte / step;  // both take longer in a crowd
  w.pace.law = comm::sim::PacePlan::Law::kLognormal;
  w.pace.sigma = std::min(spread, 1.0);
}

void set_network(const Probed& p, WorldFile& w) {
  if (!p.within.empty()) {
    const Way inside = way_of(p.within, 1);
    w.site.message = inside.latency, w.site.byte = inside.byte;
  }
  const size_t n = w.site.hosts.size();
  if (n < 2) return;
  const auto rate = [&](size_t a, size_t b) {
    return 1 / std::max(1e-12, way_of(p.between, a * n + b).byte - w.site.byte);
  };
  const auto latency = [&](size_t a, size_t b) {
    return std::max(0.0, way_of(p.between, a * n + b).latency - w.site.message);
  };
  for (size_t a = 0; a < n; ++a) {
    SitePlan::Host& h = w.site.hosts[a];
    h.latency = 1e9;
    for (size_t b = 0; b < n; ++b)
      if (b != a) h.rate = std::max(h.rate, rate(a, b)), h.latency = std::min(h.latency, latency(a, b) / 2);
  }
  for (size_t a = 0; a < n; ++a)
    for (size_t b = a + 1; b < n; ++b) {
      const SitePlan::Host &one = w.site.hosts[a], &other = w.site.hosts[b];
      const double late = latency(a, b) - one.latency - other.latency;
      const bool slow = rate(a, b) < kLess * std::min(one.rate, other.rate);
      if (slow || late > 0.5 * latency(a, b))
        w.site.links.push_back({int(a), int(b), slow ? rate(a, b) : 0, std::max(0.0, late)});
    }
}

// What the rates allow, where each host sends so many bytes to each of so many others, in a ring the nearest.
double seconds_by_rates(const SitePlan& site, int others, double bytes) {
  const int n = int(site.hosts.size());
  double longest = 0;
  for (int a = 0; a < n; ++a) {
    const SitePlan::Host &here = site.hosts[size_t(a)], &next = site.hosts[size_t((a + 1) % n)];
    longest = std::max(longest, others * bytes / here.rate + here.latency + next.latency);
  }
  for (const SitePlan::Link& l : site.links) {
    const int apart = std::abs(l.a - l.b), places = std::min(apart, n - apart);
    if (l.rate > 0 && places <= (others + 1) / 2) longest = std::max(longest, bytes / l.rate + l.latency);
  }
  return longest;
}

double share(double expected, double measured) {
  return measured > 0 ? std::clamp(expected / measured, 0.1, 1.0) : 1;
}

// What is left of the rates where messages share them, of which round trips know nothing. A sum is two
// exchanges of parts between all.
void set_shared(const Probed& p, SitePlan& site) {
  const int n = int(site.hosts.size());
  if (n < 2) return;
  const auto add = [&](double bytes, double left) {
    auto& all = site.shared.points;
    if (bytes > (all.empty() ? 0 : all.back().bytes)) all.push_back({bytes, left});
  };
  for (const ProbedExchange& sum : {p.slices, p.sum}) {
    const double part = double(sum.bytes) / n;
    add(std::min(part / double(sum.pieces), double(comm::kPieceBytes)),  // longer ones go one after the other
        share(2 * seconds_by_rates(site, n - 1, part), sum.seconds));
  }
  const double whole = double(p.gossip.bytes);
  add(whole, share(seconds_by_rates(site, p.neighbors(), whole), p.gossip.seconds));
}

}  // namespace

WorldFile world_of(const Probed& p) {
  WorldFile w;
  w.gradient = p.ghost;
  add_hosts(p, w);
  set_pace(p, w);
  set_network(p, w);
  set_shared(p, w.site);
  return w;
}

WorldFile without_network_bounds(WorldFile w) {
  for (SitePlan::Host& h : w.site.hosts) h.rate = h.latency = 0;
  w.site.links.clear();
  w.site.message = w.site.byte = w.site.work = w.site.work_one_way = 0;
  return w;
}

WorldFile without_stragglers(WorldFile w) {
  const double most = *std::max_element(w.speeds.begin(), w.speeds.end());
  for (double& speed : w.speeds) speed = most;
  w.pace.law = comm::sim::PacePlan::Law::kConstant;
  return w;
}

}  // namespace skein::apps
