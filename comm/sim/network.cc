// One queue out of each worker, then a latency, a jitter and repeats.
#include "comm/sim/network.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base.h"
#include "engine/random.h"

namespace skein::comm::sim {
namespace {

constexpr uint32_t kMostWorkers = 1 << 16;

}  // namespace

Network::Network(Baton& b, const Weather& w) : baton_(b), weather_(w) {
  CHECK(w.loss >= 0 && w.loss < 1 && w.duplication >= 0 && w.latency >= 0 && w.jitter >= 0, w.loss,
        w.duplication);
}

Network::Link& Network::link(Ends ends) {
  Link& l = links_[ends];
  l.ends = ends;
  return l;
}

const Site::Path& Network::path(Link& l) {
  if (!l.path) l.path = site_ ? site_->path(host_of(l.ends.first), host_of(l.ends.second)) : Site::Path();
  return *l.path;
}

int Network::host_of(Worker w) const { return site_->host_of(int(w) - 1); }

Clock::time_point& Network::free_at(Worker w) {
  if (w >= free_at_.size()) free_at_.resize(w + 1);
  return free_at_[w];
}

// When the sender has handed over another message, after those before it.
Clock::time_point Network::taken(Worker from, double bytes) {
  Clock::time_point& free = free_at(from);
  free = std::max(free, baton_.now());
  if (weather_.bandwidth > 0) free += in_seconds(bytes / weather_.bandwidth);
  if (site_) free += in_seconds(site_->plan().message + site_->plan().byte * bytes);
  return free = std::min(free, Clock::time_point(in_seconds(kFarOff)));
}

void Network::send(Worker from, Worker to, double bytes, std::optional<int64_t> round,
                   std::function<void()> arrive) {
  CHECK(from < kMostWorkers && to < kMostWorkers, from, to);
  Link& l = link({from, to});
  const int64_t number = l.sent++;
  const Clock::time_point handed_over = taken(from, bytes);
  if (!site_) return deliver(l, number, handed_over, std::move(arrive));
  load(l, handed_over, {bytes, round, [this, &l, number, arrive = std::move(arrive)]() mutable {
                          deliver(l, number, baton_.now(), std::move(arrive));
                        }});
}

// After what was sent before on this link has flowed.
void Network::load(Link& l, Clock::time_point from, Load one) {
  if (from <= baton_.now()) return add(l, std::move(one));
  baton_.at(from, [this, &l, one = std::move(one)]() mutable { add(l, std::move(one)); });
}

void Network::add(Link& l, Load one) {
  l.loads.push_back(std::move(one));
  if (l.loads.size() == 1) flow(l);
}

// What flows against another message makes that one cheaper too, and is given its savings.
double Network::work(Link& l, double bytes) {
  const SitePlan& p = site_->plan();
  const double more = p.work_one_way - p.work;
  if (more <= 0) return p.work * bytes;
  double& other = link({l.ends.second, l.ends.first}).one_way;
  const double both = std::min(bytes, other);
  other -= both, l.one_way = bytes - both;
  return std::max(0.0, p.work * bytes + more * (l.one_way - both));
}

void Network::flow(Link& l) {
  const Load& first = l.loads.front();
  const auto end = [this, &l] {
    if (--l.flows > 0) return;
    l.one_way = 0;
    const Load done = std::move(l.loads.front());
    l.loads.pop_front();
    done.through();
    if (!l.loads.empty()) flow(l);
  };
  Course course{path(l).through};
  if (first.round) course.turn = *first.round;
  course.shared = site_->plan().shared.left(first.bytes);
  l.flows = 1;
  if (course.through.empty() || first.bytes == 0) return end();
  const double half = work(l, first.bytes) / 2;
  for (const Worker w : {l.ends.first, l.ends.second}) l.flows += site_->work(host_of(w), half, end);
  site_->fluid().begin(std::move(course), first.bytes, end);
}

// The draws 1, 0, 2, 3, ... of a message: whether it comes twice, its jitter, its losses.
void Network::deliver(Link& l, int64_t number, Clock::time_point leaves, std::function<void()> arrive) {
  const Weather& w = weather_;
  const Draw draw{w.seed, Purpose::kFault, uint64_t(number),
                  uint32_t(l.ends.first * kMostWorkers + l.ends.second)};
  Clock::time_point arrival =
      leaves + in_seconds(w.latency + path(l).latency + (w.jitter > 0 ? w.jitter * double(draw.unit(0)) : 0));
  for (uint64_t i = 2; w.loss > 0 && double(draw.unit(i)) < w.loss; ++i)
    arrival += in_seconds(w.retry), ++counts_.lost;
  if (!w.overtaking) arrival = std::max(arrival, l.last);
  l.last = std::max(l.last, arrival);
  const bool twice = w.duplication > 0 && double(draw.unit(1)) < w.duplication;
  const auto come = [this, &l, number] {
    if (number < l.latest) ++counts_.overtaken;
    l.latest = std::max(l.latest, number);
  };
  if (!twice)
    return carry(l, arrival, [come, arrive = std::move(arrive)] {
      come();
      arrive();
    });
  const auto once = [this, come, there = std::make_shared<bool>(false), arrive = std::move(arrive)] {
    if (std::exchange(*there, true)) return void(++counts_.duplicates);
    come();
    arrive();
  };
  carry(l, arrival, once);
  carry(l, arrival, once);
}

void Network::send_datagram(Worker from, Worker to, double bytes, std::function<void()> arrive) {
  const Weather& w = weather_;
  Link& l = link({from, to});
  const Draw draw{w.seed, Purpose::kFault, ~uint64_t(l.datagrams++), uint32_t(from * kMostWorkers + to)};
  if (double(draw.unit(0)) < w.loss) return void(++counts_.lost);
  const uint64_t copies = double(draw.unit(1)) < w.duplication ? 2 : 1;
  for (uint64_t copy = 0; copy < copies; ++copy) {
    std::function<void()> one = copy + 1 < copies ? arrive : std::move(arrive);
    baton_.at(baton_.now() + in_seconds(w.latency + w.jitter * double(draw.unit(2 + copy)) +
                                        (w.bandwidth > 0 ? bytes / w.bandwidth : 0) + path(l).latency),
              [this, from, to, one = std::move(one)]() mutable {
                if (reaches(from, to)) baton_.hear(to, std::move(one));
              });
  }
}

void Network::send_last(Worker from, Worker to, std::function<void()> arrive) {
  Link& l = link({from, to});
  auto last = [this, &l, arrive = std::move(arrive)] {
    l.last = std::max(l.last, std::max(baton_.now(), free_at(l.ends.first)) +
                                  in_seconds(weather_.latency + path(l).latency));
    carry(l, l.last, arrive);
  };
  site_ ? load(l, std::max(baton_.now(), free_at(from)), {0, {}, std::move(last)}) : last();
}

void Network::carry(Link& l, Clock::time_point arrival, std::function<void()> arrive) {
  baton_.at(arrival, [this, &l, arrive = std::move(arrive)]() mutable {
    if (!reaches(l.ends.first, l.ends.second)) return l.held.push_back(std::move(arrive));
    baton_.hear(l.ends.second, std::move(arrive));
  });
}

void Network::cut(Worker a, Worker b) { ++cut_[{a, b}], ++cut_[{b, a}]; }

void Network::mend(Worker a, Worker b) {
  for (const Ends& ends : {Ends(a, b), Ends(b, a)}) {
    const auto cut = cut_.find(ends);
    if (cut == cut_.end() || --cut->second > 0) continue;
    cut_.erase(cut);
    Link& l = link(ends);
    l.last = std::max(l.last, baton_.now() + in_seconds(weather_.latency + path(l).latency));
    for (auto& arrive : std::exchange(l.held, {})) carry(l, l.last, std::move(arrive));
  }
}

}  // namespace skein::comm::sim
