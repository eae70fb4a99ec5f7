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

// The draws 1, 0, 2, 3, ... of a message: whether it comes twice, its jitter, its losses.
Clock::time_point Network::send(Worker from, Worker to, double bytes, std::function<void()> arrive) {
  CHECK(from < kMostWorkers && to < kMostWorkers, from, to);
  const Ends ends(from, to);
  Link& link = links_[ends];
  const int64_t number = link.sent++;
  const Weather& w = weather_;
  const Draw draw{w.seed, Purpose::kFault, uint64_t(number), uint32_t(from * kMostWorkers + to)};
  Clock::time_point& free_at = free_at_[from];
  free_at = std::max(free_at, baton_.now());
  if (w.bandwidth > 0) free_at += in_seconds(bytes / w.bandwidth);
  Clock::time_point arrival = free_at + in_seconds(w.latency + w.jitter * double(draw.unit(0)));
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
  return arrival;
}

void Network::send_datagram(Worker from, Worker to, double bytes, std::function<void()> arrive) {
  const Weather& w = weather_;
  const Draw draw{w.seed, Purpose::kFault, ~uint64_t(datagrams_[{from, to}]++),
                  uint32_t(from * kMostWorkers + to)};
  if (double(draw.unit(0)) < w.loss) return void(++counts_.lost);
  for (uint64_t copy = 0; copy < (double(draw.unit(1)) < w.duplication ? 2 : 1); ++copy)
    baton_.at(baton_.now() + in_seconds(w.latency + w.jitter * double(draw.unit(2 + copy)) +
                                        (w.bandwidth > 0 ? bytes / w.bandwidth : 0)),
              [this, from, to, arrive] {
                if (reaches(from, to)) baton_.hear(to, arrive);
              });
}

void Network::send_last(Worker from, Worker to, std::function<void()> arrive) {
  const Ends ends(from, to);
  Link& link = links_[ends];
  link.last = std::max(link.last, std::max(baton_.now(), free_at_[from]) + in_seconds(weather_.latency));
  carry(ends, link.last, std::move(arrive));
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
