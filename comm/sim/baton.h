// Baton: virtual time. One of its threads (operating system threads or fibers) runs at a time, with events in
// between, in an order that a seed decides.
#pragma once
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/sim/agenda.h"
#include "comm/sim/strand.h"
#include "comm/threads.h"

namespace skein::comm::sim {

// What the threads of a killed worker are unwound by; no std::exception, so that nothing handles it
// on the way.
struct Killed {};

// The threads of a worker end with it. The thread that runs holds the baton until it sleeps; then those that
// have been roused continue, in that order, and when all sleep, time moves on to the next event. Events are
// functions that run between threads: they must not sleep. All calls are made by threads of the baton or by
// events, or while run() does not run. Error where there is no thread, or no memory for a stack, for one
// more; then nothing more can be begun.
class Baton final : public Timeline {
 public:
  using Worker = uint64_t;                // counted from 1
  static constexpr double kDawn = 86400;  // seconds that the clock shows at the beginning

  explicit Baton(bool fibers = false);
  ~Baton() override { end(); }
  Baton(const Baton&) = delete;

  using Alarm = Agenda::Alarm;
  Alarm at(Clock::time_point, std::function<void()> event);
  void cancel(const Alarm& a) { agenda_.cancel(a); }                      // does nothing if it has come
  Worker begin(std::function<void()> main, std::function<void()> ended);  // `ended` comes also after a kill
  // Returns when all workers have ended. Rethrows the first exception of a worker or an event. Workers
  // that still hang when all others have ended, or when time is up, are killed; it is an Error if others
  // are left then.
  void run(Clock::time_point time_up);

  void end();  // kills all workers, and returns when they have ended
  void kill(Worker);
  void hang(Worker);        // its threads do not go on
  void wake(Worker);        // from one hang
  int hangs(Worker) const;  // in how many
  bool killed(Worker) const;
  // Runs the event now or, if the worker hangs, when it wakes; not at all if it has ended or been killed.
  void hear(Worker, std::function<void()> event);
  uint64_t events() const { return agenda_.entries(); }  // so far, those that are still to come included
  Worker here() const;                                   // whose thread runs; 0 in an event
  bool unwinds() const { return here() && killed(here()); }
  // How threads open their ports; before run().
  void open_ports_by(std::function<std::unique_ptr<DatagramPort>()> f) { open_port_ = std::move(f); }

  Clock::time_point now() const override { return now_; }
  void sleep(Clock::time_point until, Ending) override;
  ThreadNumber self() const override { return current_; }
  void rouse(ThreadNumber) override;
  ThreadNumber enlist() override;
  void live(ThreadNumber, const std::function<void()>&) override;
  std::thread start(ThreadNumber, std::function<void()>) override;
  Clock::duration stopped_since(Clock::time_point) const override;
  void await_end(ThreadNumber) override;
  std::unique_ptr<DatagramPort> open_port() override { return open_port_(); }

 private:
  struct Life {
    bool killed = false, over = false;
    int hangs = 0;  // that have not ended
    std::vector<ThreadNumber> threads;
    std::vector<std::function<void()>> unheard;  // events of the time in which it hangs
    std::vector<ThreadNumber> held;              // threads that were roused in it
    std::vector<std::pair<Clock::time_point, Clock::time_point>> hung;  // from when to when
  };
  struct Runner {
    explicit Runner(Worker w) : worker(w) {}
    const Worker worker;
    Strand strand;
    bool asleep = true, roused = false, over = false;
    std::vector<ThreadNumber> joiners;
  };
  Runner& runner(ThreadNumber n) { return *runners_[n - 1]; }
  Life& life(Worker w) { return lives_.at(w - 1); }
  const Life& life(Worker w) const { return lives_.at(w - 1); }
  ThreadNumber enlist(Worker);
  ThreadNumber next();
  void pass(ThreadNumber from);
  void step();
  void stall(const std::string& why);
  void kill_all();
  void guarded(const std::function<void()>&);
  bool all_over() const { return over_ == runners_.size(); }

  Clock::time_point time_up_ = Clock::time_point::max();
  Clock::time_point now_{std::chrono::seconds(int64_t(kDawn))};
  const bool fibers_;
  Agenda agenda_;
  Strand outside_;  // what called run()
  std::deque<ThreadNumber> ready_;
  std::mutex growing_;  // of runners_, which a thread that begins looks into
  std::vector<std::unique_ptr<Runner>> runners_;
  std::deque<Life> lives_;  // references stay valid
  std::vector<std::thread> mains_;
  ThreadNumber current_ = 0;  // 0: an event, or none
  size_t over_ = 0;
  bool given_up_ = false;
  std::exception_ptr failed_;
  std::function<std::unique_ptr<DatagramPort>()> open_port_;
};

}  // namespace skein::comm::sim
