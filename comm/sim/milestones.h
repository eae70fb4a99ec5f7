// Milestones: events that come when something has been counted so many times.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace skein::comm::sim {

class Milestones {
 public:
  // Of one number in the order in which they were added; of a number that is past, with the next count.
  void add(uint64_t number, std::function<void()> event) { due_.emplace(number, std::move(event)); }
  void count() {
    ++counted_;
    while (!due_.empty() && due_.begin()->first <= counted_) due_.extract(due_.begin()).mapped()();
  }
  uint64_t counted() const { return counted_; }

 private:
  uint64_t counted_ = 0;
  std::multimap<uint64_t, std::function<void()>> due_;
};

}  // namespace skein::comm::sim
