// Agenda: what is to happen when, in the order of time and, at the same time, of entry.
#pragma once
#include <functional>
#include <vector>

#include "comm/clock.h"

namespace skein::comm::sim {

// A heap whose entries are forgotten in place: a world arms an alarm for each wait, and most of them never
// ring. Their memory is used again.
class Agenda {
 public:
  struct Alarm {
    Clock::time_point time{};
    uint64_t number = 0;  // of the entry, from 1
    uint32_t slot = 0;
  };
  Alarm add(Clock::time_point, std::function<void()>);
  void cancel(const Alarm&);  // does nothing if it has been taken
  bool empty() const { return live_ == 0; }
  Clock::time_point first();  // when the next one is due; there is one
  std::function<void()> take_first();
  uint64_t entries() const { return entries_; }  // so far
  uint64_t count() { return ++entries_; }        // of one that needs no time, and is not kept

 private:
  struct Slot {
    uint64_t number = 0;  // 0: free
    std::function<void()> event;
  };
  bool is_live(const Alarm& a) const { return slots_[a.slot].number == a.number; }
  void drop_forgotten();
  void free(uint32_t slot);

  std::vector<Alarm> heap_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  size_t live_ = 0;
  uint64_t entries_ = 0;
};

}  // namespace skein::comm::sim
