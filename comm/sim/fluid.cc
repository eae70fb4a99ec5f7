// Progressive filling, one turn after the other: all rates grow alike, and those stop that have their most or
// use up a resource.
#include "comm/sim/fluid.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base.h"

namespace skein::comm::sim {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1 + 1e-12;  // shares of one resource that are computed in different ways differ

// The level up to which all of these flows can grow, by `growing` of them through each resource.
double next_level(const std::vector<double>& left, const std::vector<int>& growing,
                  const std::vector<Course>& flows, const std::vector<size_t>& grow) {
  double level = kInfinite;
  for (size_t r = 0; r < left.size(); ++r)
    if (growing[r] > 0) level = std::min(level, left[r] / growing[r]);
  for (const size_t f : grow) level = std::min(level, flows[f].most);
  return level;
}

// Shares what is left of the resources among these flows.
void fill(std::vector<double>& left, const std::vector<Course>& flows, std::vector<size_t> grow,
          std::vector<double>& rates) {
  std::vector<int> growing(left.size(), 0);
  for (const size_t f : grow)
    for (const size_t r : flows[f].through) ++growing[r];
  while (!grow.empty()) {
    const double level = next_level(left, growing, flows, grow);
    std::vector<bool> used_up(left.size(), false);
    for (size_t r = 0; r < left.size(); ++r)
      used_up[r] = growing[r] > 0 && left[r] / growing[r] <= level * kRounding;
    std::erase_if(grow, [&](size_t f) {
      const auto& through = flows[f].through;
      if (flows[f].most > level &&
          std::none_of(through.begin(), through.end(), [&](size_t r) { return used_up[r]; }))
        return false;
      rates[f] = level;
      for (const size_t r : through) left[r] = std::max(0.0, left[r] - level), --growing[r];
      return true;
    });
  }
}

}  // namespace

std::vector<double> fair_rates(const std::vector<double>& capacities, const std::vector<Course>& flows) {
  std::vector<double> rates(flows.size(), 0), left = capacities;
  std::vector<size_t> order(flows.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto earlier = [&](size_t a, size_t b) { return flows[a].turn < flows[b].turn; };
  if (!std::is_sorted(order.begin(), order.end(), earlier))
    std::stable_sort(order.begin(), order.end(), earlier);
  for (auto from = order.begin(); from != order.end();) {
    const auto to = std::upper_bound(from, order.end(), *from, earlier);
    fill(left, flows, {from, to}, rates);
    from = to;
  }
  return rates;
}

size_t Fluid::add(double capacity, Crowded c) {
  CHECK(capacity > 0 && c.small > 0 && c.large > 0, capacity, c.small, c.large);
  resources_.push_back({capacity, c});
  return resources_.size() - 1;
}

void Fluid::oppose(size_t a, size_t b) { resources_[a].opposite = b, resources_[b].opposite = a; }

template <class F>
void Fluid::each_beside(const Resource& r, F f) const {
  for (const Flow one : r.flows) f(one);
  if (!r.opposite) return;
  for (const Flow one : resources_[*r.opposite].flows) f(one);
}

double Fluid::capacity_now(const Resource& r) const {
  if (!r.crowded.is_less()) return r.capacity;
  int flows = 0;
  bool large = false;
  each_beside(r, [&](Flow f) { ++flows, large |= flows_.at(f).course.large; });
  return flows < 2 ? r.capacity : r.capacity * (large ? r.crowded.large : r.crowded.small);
}

Fluid::Flow Fluid::begin(Course course, double amount, std::function<void()> done) {
  CHECK(amount >= 0 && course.most > 0, amount, course.most);
  const Flow f = ++begun_;
  double alone = course.most;  // its rate, if it shares nothing
  bool shares = false;
  for (size_t r : course.through) {
    Resource& used = resources_.at(r);
    each_beside(used, [&](Flow) { shares = true; });
    alone = std::min(alone, used.capacity);
    used.flows.insert(f);
  }
  State& state =
      flows_.emplace(f, State{std::move(course), amount, 0, baton_.now(), {}, std::move(done)}).first->second;
  if (!shares) return retime(f, state, alone), f;
  changed_.insert(f);
  if (!std::exchange(settles_, true)) baton_.at(baton_.now(), [this] { settle(); });
  return f;
}

void Fluid::cancel(Flow f) {
  if (const auto i = flows_.find(f); i != flows_.end()) remove(i);
}

// Those that shared a resource with it may be faster from now on.
void Fluid::remove(Flows::iterator i) {
  const auto& [flow, state] = *i;
  if (state.ends) baton_.cancel(*state.ends);
  for (size_t r : state.course.through) {
    resources_[r].flows.erase(flow);
    each_beside(resources_[r], [&](Flow other) { changed_.insert(other); });
  }
  changed_.erase(flow);
  flows_.erase(i);
  if (!changed_.empty() && !std::exchange(settles_, true)) baton_.at(baton_.now(), [this] { settle(); });
}

// Goes through the flows of each resource, and of the opposite one, once or twice.
std::vector<Fluid::Flow> Fluid::connected(Flow first, std::set<Flow>& seen) const {
  std::vector<Flow> all = {first};
  std::set<size_t> resources;
  seen.insert(first);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t r : flows_.at(all[i]).course.through)
      if (resources.insert(r).second)
        each_beside(resources_[r], [&](Flow f) {
          if (seen.insert(f).second) all.push_back(f);
        });
  return all;
}

void Fluid::settle() {
  settles_ = false;
  std::set<Flow> seen;
  for (Flow f : std::exchange(changed_, {}))
    if (!seen.count(f)) settle(connected(f, seen));
}

void Fluid::settle(const std::vector<Flow>& together) {
  std::map<size_t, size_t> place;  // of a resource, among those that these flows use
  std::vector<double> capacities;
  std::vector<Course> courses;
  for (Flow f : together) {
    const Course& own = flows_.at(f).course;
    Course c{{}, own.most, own.turn};
    for (size_t r : own.through) {
      const auto [at, fresh] = place.emplace(r, capacities.size());
      if (fresh) capacities.push_back(capacity_now(resources_[r]));
      c.through.push_back(at->second);
    }
    courses.push_back(std::move(c));
  }
  const std::vector<double> rates = fair_rates(capacities, courses);
  for (size_t i = 0; i < together.size(); ++i) retime(together[i], flows_.at(together[i]), rates[i]);
}

void Fluid::retime(Flow f, State& s, double rate) {
  if (s.ends && s.rate == rate) return;
  const Clock::time_point now = baton_.now();
  if (s.rate < kInfinite)
    s.left = std::max(0.0, s.left - s.rate * std::chrono::duration<double>(now - s.since).count());
  s.rate = rate, s.since = now;
  if (s.ends) baton_.cancel(*s.ends);
  constexpr double kLongest = 1e9;  // seconds, which no world lasts
  const double seconds = s.left > 0 ? std::min(s.left / rate, kLongest) : 0;
  const auto length = Clock::duration(int64_t(std::ceil(seconds * 1e9)));
  s.ends = baton_.at(now + length, [this, f] {
    const auto i = flows_.find(f);
    const std::function<void()> done = std::move(i->second.done);
    i->second.ends.reset();
    remove(i);
    done();
  });
}

}  // namespace skein::comm::sim
