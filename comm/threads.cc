// Each call asks whether the thread lives in a world, and otherwise does what the standard library does.
#include "comm/threads.h"

#include <utility>

namespace skein::comm {

Clock::time_point Clock::simulated_now() { return timeline_here->now(); }

Clock::duration simulated_absence(Clock::time_point looked) { return timeline_here->stopped_since(looked); }

uint64_t this_thread() {
  return timeline_here ? timeline_here->self() : std::hash<std::thread::id>()(std::this_thread::get_id());
}

double unix_seconds() {
  constexpr double kADayIn2020 = 1577836800;
  if (timeline_here) return kADayIn2020 + clock_seconds();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void nap_until(Clock::time_point t) {
  if (!timeline_here) return std::this_thread::sleep_for(t - Clock::now());
  do timeline_here->sleep(t, Timeline::Ending::kMayThrow);
  while (Clock::now() < t);
}

void Mutex::lock_simulated() {
  Timeline& t = *timeline_here;
  while (!mutex_.try_lock()) {
    sleepers_.push_back(t.self());
    t.sleep(Clock::time_point::max(), Timeline::Ending::kMustReturn);
    std::erase(sleepers_, t.self());
  }
}

void Mutex::rouse_next() {
  if (sleepers_.empty()) return;
  timeline_here->rouse(sleepers_.front());
  sleepers_.erase(sleepers_.begin());
}

void Condition::notify_one() {
  condition_.notify_one();
  if (!timeline_here || sleepers_.empty()) return;
  timeline_here->rouse(sleepers_.front());
  sleepers_.erase(sleepers_.begin());
}

void Condition::notify_all() {
  condition_.notify_all();
  if (!timeline_here) return;
  for (const Timeline::ThreadNumber n : sleepers_) timeline_here->rouse(n);
  sleepers_.clear();
}

void Condition::sleep(Lock& lock, Clock::time_point until) {
  if (timeline_here) {
    struct Awake {  // also where the sleep throws
      Condition& c;
      const Timeline::ThreadNumber me;
      ~Awake() { std::erase(c.sleepers_, me); }
    } awake{*this, timeline_here->self()};
    sleepers_.push_back(awake.me);
    lock.unlock();
    timeline_here->sleep(until, Timeline::Ending::kMayThrow);
    lock.lock();
    return;
  }
  std::unique_lock inner(lock.mutex()->mutex_, std::adopt_lock);
  if (until == Clock::time_point::max())
    condition_.wait(inner);
  else
    condition_.wait_until(inner, std::chrono::steady_clock::time_point(until.time_since_epoch()));
  inner.release();
}

Thread::Thread(std::function<void()> f) {
  if (Timeline* const t = timeline_here) {
    number_ = t->enlist();
    thread_ = t->start(number_, std::move(f));
  } else {
    thread_ = std::thread(std::move(f));
  }
}

void Thread::join() {
  if (timeline_here && number_ > 0) timeline_here->await_end(number_);
  number_ = 0;
  if (thread_.joinable()) thread_.join();
}

}  // namespace skein::comm
