// Strand: what a thread of a simulated world runs on, a thread of the machine or a fiber.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "comm/sim/fiber.h"

namespace skein::comm::sim {

// What one thread waits for and another gives.
class Signal {
 public:
  void give() {
    const std::lock_guard lock(mutex_);
    given_ = true;
    changed_.notify_one();
  }
  void take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return given_; });
    given_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false;
};

// A thread's until it is made a fiber's. All that resume each other are of one kind; one at a time runs.
class Strand {
 public:
  void make_fiber() { fiber_ = std::make_unique<Fiber>(); }  // the stack of the calling thread
  void make_fiber(std::function<void()> main) { fiber_ = std::make_unique<Fiber>(std::move(main)); }
  void drop_fiber() { fiber_.reset(); }
  // A new thread begins by it. Returns when it is resumed; a fiber does not run before.
  void await_turn() {
    if (!fiber_) go_.take();
  }
  // Called on `running`: this one goes on. Returns when `running` is resumed; at once if that is a thread and
  // `ends`.
  void resume(Strand& running, bool ends = false) {
    if (fiber_) return fiber_->resume(*running.fiber_);
    go_.give();
    if (!ends) running.go_.take();
  }

 private:
  Signal go_;
  std::unique_ptr<Fiber> fiber_;
};

}  // namespace skein::comm::sim
