// EventOrder: what several threads of a worker do to its model happens one event at a time, and in the
// recorded order where a run is replayed.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <initializer_list>
#include <memory>

#include "comm/clock.h"
#include "comm/threads.h"
#include "optim/order_log.h"

namespace skein::optim {

// Its mutex guards what the events change. All calls are made with it locked, except
// lock(), notify(), stop() and stopped().
class EventOrder {
 public:
  using Lock = std::unique_lock<comm::Mutex>;

  // Before any event: opens the recording of this rank, as the options say.
  void open(const Options& o, const std::string& name) { log_ = std::make_unique<OrderLog>(o, name); }
  OrderLog& log() const { return *log_; }
  void set_deadline(double seconds) { deadline_ = seconds; }  // of later waits

  Lock lock() { return Lock(mutex_); }
  // Wakes all that wait, since an event has happened.
  void notify() { changed_.notify_all(); }
  // Ends all waits: of until() by an error.
  void stop() {
    stopped_ = true;
    const Lock held = lock();
    notify();
  }
  bool stopped() const { return stopped_; }
  // What a thread failed with ends the waits of the others.
  void fail(std::exception_ptr e) {
    failed_ = std::move(e);
    notify();
  }
  void rethrow_failure() const {
    if (failed_) std::rethrow_exception(failed_);
  }

  // Waits for that; throws Error after the deadline or at the end, and what another thread failed with.
  template <class Ready>
  void until(Lock& lock, Ready ready) {
    auto end = comm::after(deadline_);
    for (auto looked = comm::Clock::now(); !ready();) {
      rethrow_failure();
      if (stopped_) throw Error("ad-psgd has ended");
      changed_.sleep(lock, std::min(end, comm::after(comm::longest_nap())));
      end += comm::absence(looked);
      if (comm::Clock::now() >= end && !ready()) give_up();
    }
  }
  // Waits for that, for the end, or for a failure of another thread, but not longer than
  // until then, and throws nothing of its own.
  template <class Ready>
  void wait_until(Lock& lock, comm::Clock::time_point end, Ready ready) {
    changed_.wait_until(lock, end, [&] { return stopped_ || failed_ || ready(); });
  }

  // Of a replay: whether one of these is what happened next.
  bool next_is(std::initializer_list<int64_t> events) const {
    return std::find(events.begin(), events.end(), log_->next()) != events.end();
  }
  // Waits until the event may happen, which in a replay is when it did, and writes it down.
  void begin(Lock& lock, int64_t event) {
    if (log_->replaying()) until(lock, [&] { return next_is({event}); });
    log_->happened(event);
  }

 private:
  [[noreturn]] void give_up() const;

  comm::Mutex mutex_;
  comm::Condition changed_;
  double deadline_ = 60;
  std::atomic<bool> stopped_{false};
  std::exception_ptr failed_;
  std::unique_ptr<OrderLog> log_;
};

}  // namespace skein::optim
