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

const Site::Path& Network::path(Ends ends) {
  std::optional<Site::Path>& path = links_[ends].path;
  if (!path) path = site_ ? site_->path(host_of(ends.first), host_of(ends.second)) : Site::Path();
  return *path;
}

int Network::host_of(Worker w) const { return site_->host_of(int(w) - 1); }

// When the sender has handed over another message, after those before it.
Clock::time_point Network::taken(Worker from, double bytes) {
  Clock::time_point& free_at = free_at_[from];
  free_at = std::max(free_at, baton_.now());
  if (weather_.bandwidth > 0) free_at += in_seconds(bytes / weather_.bandwidth);
  if (site_) free_at += in_seconds(site_->plan().message + site_->plan().byte * bytes);
  return free_at;
}

void Network::send(Worker from, Worker to, double bytes, std::function<void()> arrive) {
  CHECK(from < kMostWorkers && to < kMostWorkers, from, to);
  const Ends ends(from, to);
  const int64_t number = links_[ends].sent++;
  const Clock::time_point handed_over = taken(from, bytes);
  if (!site_) return deliver(ends, number, handed_over, std::move(arrive));
  load(ends, handed_over, {bytes, [this, ends, number, arrive = std::move(arrive)] {
                             deliver(ends, number, baton_.now(), arrive);
                           }});
}

// After what was sent before on this link has flowed.
void Network::load(Ends ends, Clock::time_point from, Load l) {
  const auto add = [this, ends, l = std::move(l)] {
    std::deque<Load>& loads = links_[ends].loads;
    loads.push_back(l);
    if (loads.size() == 1) flow(ends);
  };
  from > baton_.now() ? void(baton_.at(from, add)) : add();
}

void Network::flow(Ends ends) {
  const Load& first = links_[ends].loads.front();
  const auto end = [this, ends] {
    std::deque<Load>& loads = links_[ends].loads;
    const Load done = std::move(loads.front());
    loads.pop_front();
    done.through();
    if (!loads.empty()) flow(ends);
  };
  Course course{path(ends).through};
  if (course.through.empty() || first.bytes == 0) return end();
  site_->fluid().begin(std::move(course), first.bytes, end);
}

// The draws 1, 0, 2, 3, ... of a message: whether it comes twice, its jitter, its losses.
void Network::deliver(Ends ends, int64_t number, Clock::time_point leaves, std::function<void()> arrive) {
  const Weather& w = weather_;
  const Draw draw{w.seed, Purpose::kFault, uint64_t(number),
                  uint32_t(ends.first * kMostWorkers + ends.second)};
  Link& link = links_[ends];
  Clock::time_point arrival =
      leaves + in_seconds(w.latency + path(ends).latency + w.jitter * double(draw.unit(0)));
  for (uint64_t i = 2; double(draw.unit(i)) < w.loss; ++i) arrival += in_seconds(w.retry), ++counts_.lost;
  if (!w.overtaking) arrival = std::max(arrival, link.last);
  link.last = std::max(link.last, arrival);
  const auto once = [this, ends, number, there = std::make_shared<bool>(false), arrive = std::move(arrive)] {
    if (std::exchange(*there, true)) return void(++counts_.duplicates);
    Link& l = links_[ends];
    if (number < l.latest) ++counts_.overtaken;
    l.latest = std::max(l.latest, number);
    arrive();
  };
  carry(ends, arrival, once);
  if (double(draw.unit(1)) < w.duplication) carry(ends, arrival, once);
}

void Network::send_datagram(Worker from, Worker to, double bytes, std::function<void()> arrive) {
  const Weather& w = weather_;
  const Draw draw{w.seed, Purpose::kFault, ~uint64_t(datagrams_[{from, to}]++),
                  uint32_t(from * kMostWorkers + to)};
  if (double(draw.unit(0)) < w.loss) return void(++counts_.lost);
  for (uint64_t copy = 0; copy < (double(draw.unit(1)) < w.duplication ? 2 : 1); ++copy)
    baton_.at(
        baton_.now() + in_seconds(w.latency + w.jitter * double(draw.unit(2 + copy)) +
                                  (w.bandwidth > 0 ? bytes / w.bandwidth : 0) + path({from, to}).latency),
        [this, from, to, arrive] {
          if (reaches(from, to)) baton_.hear(to, arrive);
        });
}

void Network::send_last(Worker from, Worker to, std::function<void()> arrive) {
  const Ends ends(from, to);
  const auto last = [this, ends, arrive = std::move(arrive)] {
    Link& link = links_[ends];
    link.last = std::max(link.last, std::max(baton_.now(), free_at_[ends.first]) +
                                        in_seconds(weather_.latency + path(ends).latency));
    carry(ends, link.last, arrive);
  };
  site_ ? load(ends, std::max(baton_.now(), free_at_[from]), {0, last}) : last();
}

void Network::carry(Ends ends, Clock::time_point arrival, std::function<void()> arrive) {
  baton_.at(arrival, [this, ends, arrive = std::move(arrive)] {
    if (!reaches(ends.first, ends.second)) return links_[ends].held.push_back(arrive);
    baton_.hear(ends.second, arrive);
  });
}

void Network::cut(Worker a, Worker b) { cut_.insert({a, b}), cut_.insert({b, a}); }

void Network::mend(Worker a, Worker b) {
  for (const Ends& ends : {Ends(a, b), Ends(b, a)}) {
    if (!cut_.erase(ends)) continue;
    Link& link = links_[ends];
    link.last = std::max(link.last, baton_.now() + in_seconds(weather_.latency));
    for (auto& arrive : std::exchange(link.held, {})) carry(ends, link.last, std::move(arrive));
  }
}

}  // namespace skein::comm::sim
