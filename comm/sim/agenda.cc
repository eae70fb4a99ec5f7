// A binary heap with the earliest entry in front.
#include "comm/sim/agenda.h"

#include <algorithm>
#include <utility>

namespace skein::comm::sim {
namespace {

// For std::push_heap, which has the largest in front.
bool later(const Agenda::Alarm& a, const Agenda::Alarm& b) {
  return a.time != b.time ? a.time > b.time : a.number > b.number;
}

constexpr size_t kFewForgotten = 1024;  // entries that are not worth a new heap

}  // namespace

Agenda::Alarm Agenda::add(Clock::time_point t, std::function<void()> event) {
  uint32_t slot = uint32_t(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  const Alarm a{t, ++entries_, slot};
  slots_[slot].number = a.number;
  slots_[slot].event = std::move(event);
  heap_.push_back(a);
  std::push_heap(heap_.begin(), heap_.end(), later);
  ++live_;
  return a;
}

void Agenda::free(uint32_t slot) {
  slots_[slot].number = 0;
  free_.push_back(slot);
  --live_;
}

void Agenda::cancel(const Alarm& a) {
  if (a.number == 0 || !is_live(a)) return;
  slots_[a.slot].event = nullptr;
  free(a.slot);
  if (heap_.size() < 2 * live_ + kFewForgotten) return;
  std::erase_if(heap_, [this](const Alarm& b) { return !is_live(b); });
  std::make_heap(heap_.begin(), heap_.end(), later);
}

void Agenda::drop_forgotten() {
  while (!is_live(heap_.front())) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
}

Clock::time_point Agenda::first() {
  drop_forgotten();
  return heap_.front().time;
}

std::function<void()> Agenda::take_first() {
  drop_forgotten();
  const uint32_t slot = heap_.front().slot;
  std::function<void()> event = std::move(slots_[slot].event);
  free(slot);
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
  return event;
}

}  // namespace skein::comm::sim
