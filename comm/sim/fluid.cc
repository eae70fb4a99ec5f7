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

Clock::duration lasting(double seconds) {
  constexpr double kLongest = 1e9;  // which no world lasts
  return Clock::duration(int64_t(std::ceil(std::clamp(seconds, 0.0, kLongest) * 1e9)));
}

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

size_t Fluid::add(double capacity) {
  CHECK(capacity > 0, capacity);
  resources_.push_back({capacity, false});
  return resources_.size() - 1;
}

size_t Fluid::add_lossy(double capacity) {
  const size_t r = add(capacity);
  resources_[r].is_lossy = true;
  return r;
}

void Fluid::oppose(size_t a, size_t b) { resources_[a].opposite = b, resources_[b].opposite = a; }

template <class F>
void Fluid::each_beside(const Resource& r, F f) const {
  for (const Flow one : r.flows) f(one);
  if (!r.opposite) return;
  for (const Flow one : resources_[*r.opposite].flows) f(one);
}

double Fluid::capacity_now(const Resource& r) const {
  if (!r.is_lossy) return r.capacity;
  int flows = 0;
  double shared = 1;
  each_beside(r, [&](Flow f) { ++flows, shared = std::min(shared, flows_.at(f).course.shared); });
  return flows < 2 ? r.capacity : r.capacity * shared;
}

Fluid::Flow Fluid::begin(Course course, double amount, std::function<void()> done) {
  CHECK(amount >= 0 && course.most > 0 && course.shared > 0, amount, course.most, course.shared);
  const Flow f = ++begun_;
  if (const auto place = even_place_for(course)) {
    Even& even = *resources_[*place].even;
    for (size_t r : course.through) resources_[r].flows.push_back(f);
    even.most = std::min(even.most, most_but_in(*place, course));
    even.flows.join(f, amount, baton_.now());
    flows_.emplace(f, State{std::move(course), amount, 0, baton_.now(), {}, std::move(done), place});
    return await_first(*place), f;
  }
  double alone = course.most;  // its rate, if it shares nothing
  bool shares = false;
  for (size_t r : course.through) {
    Resource& used = resources_.at(r);
    if (!used.flows.empty())
      if (const auto held = flows_.at(used.flows.front()).evenly) dissolve(*held);
    each_beside(used, [&](Flow) { shares = true; });
    alone = std::min(alone, used.capacity);
    used.flows.push_back(f);
  }
  State& state =
      flows_.emplace(f, State{std::move(course), amount, 0, baton_.now(), {}, std::move(done)}).first->second;
  if (!shares) return retime(f, state, alone), f;
  settle_soon(f);
  return f;
}

void Fluid::cancel(Flow f) {
  if (const auto i = flows_.find(f); i != flows_.end()) remove(i);
}

void Fluid::leave(Resource& r, Flow f) { r.flows.erase(std::lower_bound(r.flows.begin(), r.flows.end(), f)); }

// Those that shared a resource with it may be faster from now on.
void Fluid::remove(Flows::iterator i) {
  const auto& [flow, state] = *i;
  if (state.evenly) return remove_evenly(i);
  if (state.ends) baton_.cancel(*state.ends);
  for (size_t r : state.course.through) {
    leave(resources_[r], flow);
    each_beside(resources_[r], [&](Flow other) { settle_soon(other); });
  }
  flows_.erase(i);
}

// Goes through the flows of each resource, and of the opposite one, once or twice.
Fluid::Together Fluid::connected_with(Flow first) {
  Together all;
  const auto come_to = [&](Flow f) {
    State& s = flows_.at(f);
    if (std::exchange(s.settled, settlings_) != settlings_) all.flows.emplace_back(f, &s);
  };
  come_to(first);
  for (size_t i = 0; i < all.flows.size(); ++i)
    for (size_t r : all.flows[i].second->course.through) {
      Resource& used = resources_[r];
      if (std::exchange(used.settled, settlings_) == settlings_) continue;
      used.place = all.resources.size();
      all.resources.push_back(r);
      each_beside(used, come_to);
    }
  return all;
}

void Fluid::settle_soon(Flow f) {
  if (std::exchange(flows_.at(f).has_changed, true)) return;
  if (changed_.empty()) baton_.at(baton_.now(), [this] { settle(); });
  changed_.push_back(f);
}

void Fluid::settle() {
  ++settlings_;
  std::vector<Flow> changed = std::exchange(changed_, {});
  std::sort(changed.begin(), changed.end());
  for (Flow f : changed)
    if (const auto i = flows_.find(f); i != flows_.end()) {
      i->second.has_changed = false;
      if (i->second.settled != settlings_) settle(connected_with(f));
    }
}

void Fluid::settle(const Together& together) {
  if (share_evenly(together)) return;
  std::vector<double> capacities;
  for (size_t r : together.resources) capacities.push_back(capacity_now(resources_[r]));
  std::vector<Course> courses;
  for (const auto& [f, state] : together.flows) {
    const Course& own = state->course;
    Course& c = courses.emplace_back(Course{{}, own.most, own.turn});
    for (size_t r : own.through) c.through.push_back(resources_[r].place);
  }
  const std::vector<double> rates = fair_rates(capacities, courses);
  size_t i = 0;
  for (const auto& [f, state] : together.flows) retime(f, *state, rates[i++]);
}

void Fluid::flow_until_now(State& s) const {
  const Clock::time_point now = baton_.now();
  if (s.rate < kInfinite)
    s.left = std::max(0.0, s.left - s.rate * std::chrono::duration<double>(now - s.since).count());
  s.since = now;
}

void Fluid::retime(Flow f, State& s, double rate) {
  if (s.ends && s.rate == rate) return;
  flow_until_now(s);
  s.rate = rate;
  if (s.ends) baton_.cancel(*s.ends);
  s.ends = baton_.at(baton_.now() + lasting(s.left > 0 ? s.left / rate : 0), [this, f] { end(f); });
}

void Fluid::end(Flow f) {
  const auto i = flows_.find(f);
  const std::function<void()> done = std::move(i->second.done);
  i->second.ends.reset();
  remove(i);
  done();
}

// ---- resources that are shared evenly ---------------------------------------------------------------------

// Whether nothing flows through what else it uses, but for so many flows.
bool Fluid::is_alone_but_in(size_t resource, const Course& c, size_t itself) const {
  return std::all_of(c.through.begin(), c.through.end(), [&](size_t r) {
    return !resources_[r].is_lossy && (r == resource || resources_[r].flows.size() == itself);
  });
}

// The rate that what else it uses would give it.
double Fluid::most_but_in(size_t resource, const Course& c) const {
  double most = c.most;
  for (size_t r : c.through)
    if (r != resource) most = std::min(most, resources_[r].capacity);
  return most;
}

std::optional<size_t> Fluid::even_place_for(const Course& c) const {
  for (size_t place : c.through) {
    const Resource& r = resources_[place];
    if (!r.even) continue;
    const double share = r.capacity / double(r.flows.size() + 1);
    const bool fits =
        c.turn == r.even->turn && is_alone_but_in(place, c, 0) && most_but_in(place, c) >= share;
    return fits ? std::optional(place) : std::nullopt;
  }
  return std::nullopt;
}

// Returns whether one resource holds them all.
bool Fluid::share_evenly(const Together& together) {
  constexpr size_t kFrom = 8;  // rates of fewer are as soon computed
  if (together.flows.size() < kFrom) return false;
  const Course& one = together.flows[0].second->course;
  const auto place = std::find_if(one.through.begin(), one.through.end(), [&](size_t r) {
    return resources_[r].flows.size() == together.flows.size();
  });
  if (place == one.through.end()) return false;
  Resource& all = resources_[*place];
  double most = kInfinite;
  for (const auto& [f, state] : together.flows) {
    const Course& c = state->course;
    if (c.turn != one.turn || !is_alone_but_in(*place, c, 1)) return false;
    most = std::min(most, most_but_in(*place, c));
  }
  if (most < all.capacity / double(together.flows.size())) return false;
  all.even = std::make_unique<Even>(Even{EqualShares(all.capacity, baton_.now()), one.turn, most});
  for (const auto& [f, s] : together.flows) {
    flow_until_now(*s);
    if (s->ends) baton_.cancel(*std::exchange(s->ends, {}));
    s->evenly = *place;
    all.even->flows.join(f, s->left, baton_.now());
  }
  await_first(*place);
  return true;
}

void Fluid::await_first(size_t resource) {
  Even& even = *resources_[resource].even;
  if (even.ends) baton_.cancel(*even.ends);
  even.ends = baton_.at(baton_.now() + lasting(even.flows.seconds_to_first()), [this, &even] {
    even.ends.reset();
    end(even.flows.first());
  });
}

void Fluid::remove_evenly(Flows::iterator i) {
  const size_t place = *i->second.evenly;
  Even& even = *resources_[place].even;
  even.flows.leave(i->first, baton_.now());
  for (size_t r : i->second.course.through) leave(resources_[r], i->first);
  flows_.erase(i);
  if (even.flows.size() == 0 || even.most < even.flows.rate()) return dissolve(place);
  await_first(place);
}

void Fluid::dissolve(size_t resource) {
  const std::unique_ptr<Even> even = std::move(resources_[resource].even);
  if (even->ends) baton_.cancel(*even->ends);
  for (Flow f : resources_[resource].flows) {
    State& s = flows_.at(f);
    s.left = even->flows.leave(f, baton_.now());
    s.rate = 0, s.since = baton_.now(), s.evenly.reset();
    settle_soon(f);
  }
}

}  // namespace skein::comm::sim
