// Threads, mutexes and conditions of a run: the machine's or, in a simulated world, the world's.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/datagram_port.h"

namespace skein::comm {

// What a simulated world (comm/sim) offers to its threads. Only one of them runs at a time.
class Timeline {
 public:
  using ThreadNumber = uint64_t;  // counted in the order in which threads are started
  virtual ~Timeline() = default;
  virtual Clock::time_point now() const = 0;
  // Lets others run until the calling thread is roused, or until that time. If its worker has been killed, it
  // throws, or with kMustReturn returns soon.
  enum class Ending : uint8_t { kMayThrow, kMustReturn };
  virtual void sleep(Clock::time_point until, Ending) = 0;
  virtual ThreadNumber self() const = 0;
  virtual void rouse(ThreadNumber) = 0;
  // A thread of the caller's worker: enlist() gives its number, and the new thread calls live() with it.
  virtual ThreadNumber enlist() = 0;
  virtual void live(ThreadNumber, const std::function<void()>&) = 0;
  // Starts what calls live(): a thread of the machine, to be joined after await_end(), or nothing that is
  // to be joined.
  virtual std::thread start(ThreadNumber n, std::function<void()> f) {
    return std::thread([this, n, f = std::move(f)] { live(n, f); });
  }
  virtual void await_end(ThreadNumber) = 0;
  // For how long the calling thread's worker has hung since then.
  virtual Clock::duration stopped_since(Clock::time_point) const { return {}; }
  virtual std::unique_ptr<DatagramPort> open_port() = 0;  // of the calling thread's worker
};

// Tells the calling thread from all others that live in the same time.
uint64_t this_thread();

// std::mutex. Where a thread may wait for something while it holds one, the threads that compete for it have
// to be of the same timeline.
class Mutex {
 public:
  void lock() {
    if (timeline_here)
      lock_simulated();
    else
      mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() {
    mutex_.unlock();
    if (timeline_here) rouse_next();
  }

 private:
  friend class Condition;
  void lock_simulated();
  void rouse_next();
  std::mutex mutex_;
  std::vector<Timeline::ThreadNumber> sleepers_;  // only one thread of a world runs, so this needs no lock
};

// std::condition_variable, for threads of one timeline.
class Condition {
 public:
  using Lock = std::unique_lock<Mutex>;
  void notify_one();
  void notify_all();
  // Returns after a notification, at `until`, or by chance.
  void sleep(Lock&, Clock::time_point until);
  template <class Ready>
  void wait(Lock& lock, Ready ready) {
    wait_until(lock, Clock::time_point::max(), ready);
  }
  // false: it is `until`, and not ready.
  template <class Ready>
  bool wait_until(Lock& lock, Clock::time_point until, Ready ready) {
    while (!ready()) {
      if (Clock::now() >= until) return false;
      sleep(lock, until);
    }
    return true;
  }

 private:
  std::condition_variable condition_;
  std::vector<Timeline::ThreadNumber> sleepers_;
};

// std::thread; in a world, a thread of the worker that starts it. To be joined before it is destroyed.
class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()>);
  bool joinable() const { return number_ > 0 || thread_.joinable(); }
  void join();

 private:
  std::thread thread_;                 // not joinable if the world needs none
  Timeline::ThreadNumber number_ = 0;  // in the world, until it is joined
};

}  // namespace skein::comm
