// A signal per thread: who sleeps picks who goes on, runs the events in between, and hands over.
#include "comm/sim/baton.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "engine/base.h"

namespace skein::comm::sim {
namespace {

// How long a thread sleeps that must not and cannot be unwound, before it looks again.
constexpr auto kLastMoments = std::chrono::milliseconds(1);

std::string too_late(Clock::time_point t) {
  constexpr double kDay = 86400;
  const double s = std::chrono::duration<double>(t.time_since_epoch()).count() - Baton::kDawn;
  return text(s < 2 * kDay ? s : s / kDay, s < 2 * kDay ? " s" : " days",
              " of virtual time have passed, and workers are still at work; take fewer steps, or look for a "
              "step or a link that is slower than it is meant to be");
}

template <class Start>
std::thread thread_of(Start start) {
  try {
    return start();
  } catch (const std::system_error& e) {
    throw Error(text("there is no thread for another simulated worker: ", e.what(),
                     "; simulate fewer, or raise the limits on processes and memory (ulimit -u, ulimit -v)"));
  }
}

}  // namespace

Baton::Baton(bool fibers) : fibers_(fibers) {
  if (fibers_) outside_.make_fiber();
}

void Baton::end() {
  kill_all();
  try {
    run(Clock::time_point::max());
  } catch (...) {}
}

Baton::Alarm Baton::at(Clock::time_point t, std::function<void()> event) {
  return agenda_.add(std::max(t, now_), std::move(event));
}

// ---- threads ----------------------------------------------------------------------------------------------

Timeline::ThreadNumber Baton::enlist(Worker w) {
  {
    const std::lock_guard lock(growing_);
    runners_.push_back(std::make_unique<Runner>(w));
  }
  const ThreadNumber n = runners_.size();
  life(w).threads.push_back(n);
  rouse(n);
  return n;
}
Timeline::ThreadNumber Baton::enlist() { return enlist(here()); }

Baton::Worker Baton::begin(std::function<void()> main, std::function<void()> ended) {
  lives_.emplace_back();
  const Worker w = lives_.size();
  std::thread t = start(enlist(w), [this, w, main = std::move(main), ended = std::move(ended)] {
    try {
      if (!killed(w)) main();
    } catch (const Killed&) {
    } catch (...) {
      if (!failed_) failed_ = std::current_exception();
    }
    life(w).over = true;
    ended();
  });
  if (t.joinable()) mains_.push_back(std::move(t));
  return w;
}

std::thread Baton::start(ThreadNumber n, std::function<void()> f) {
  try {
    if (!fibers_) return thread_of([&] { return Timeline::start(n, std::move(f)); });
    return runner(n).strand.make_fiber([this, n, f = std::move(f)] { live(n, f); }), std::thread();
  } catch (...) {
    runner(n).over = true, ++over_;  // it has nothing to run on, and must never be resumed
    throw;
  }
}

void Baton::live(ThreadNumber n, const std::function<void()>& f) {
  Runner& me = [&]() -> Runner& {
    const std::lock_guard lock(growing_);
    return runner(n);
  }();
  timeline_here = this;
  me.strand.await_turn();
  try {
    f();
  } catch (const Killed&) {}
  me.over = true;
  ++over_;
  for (ThreadNumber j : me.joiners) rouse(j);
  pass(n);  // from which a fiber does not come back
  timeline_here = nullptr;
}

void Baton::await_end(ThreadNumber n) {
  while (!runner(n).over) {
    runner(n).joiners.push_back(current_);
    sleep(Clock::time_point::max(), Ending::kMustReturn);
  }
}

Baton::Worker Baton::here() const { return current_ ? runners_[current_ - 1]->worker : 0; }

void Baton::rouse(ThreadNumber n) {
  Runner& r = runner(n);
  if (!r.asleep || r.over || std::exchange(r.roused, true)) return;
  Life& l = life(r.worker);
  l.hangs ? l.held.push_back(n) : ready_.push_back(n);
}

void Baton::sleep(Clock::time_point until, Ending ending) {
  CHECK(current_, "an event of a simulated world must not wait");
  const ThreadNumber me = current_;
  const Life& mine = life(runner(me).worker);
  const auto end_here = [&] {
    return mine.killed && ending == Ending::kMayThrow && std::uncaught_exceptions() == 0;
  };
  if (end_here()) throw Killed();
  if (mine.killed) until = std::min(until, now_ + kLastMoments);
  runner(me).asleep = true;
  Alarm alarm;
  if (until != Clock::time_point::max())
    alarm = at(until, [this, me] { rouse(me); });
  else
    agenda_.count();
  pass(me);
  cancel(alarm);
  if (end_here()) throw Killed();
}

// ---- who is next ------------------------------------------------------------------------------------------

void Baton::pass(ThreadNumber from) {
  current_ = 0;
  const ThreadNumber to = next();
  if (to != from) (to ? runner(to).strand : outside_).resume(runner(from).strand, runner(from).over);
}

// The thread that goes on; 0: all have ended.
Timeline::ThreadNumber Baton::next() {
  while (!all_over()) {
    if (ready_.empty()) {
      step();
      continue;
    }
    const ThreadNumber n = ready_.front();
    ready_.pop_front();
    Runner& r = runner(n);
    if (r.over) continue;
    if (life(r.worker).hangs) {  // since it was roused
      life(r.worker).held.push_back(n);
      continue;
    }
    r.asleep = r.roused = false;
    current_ = n;
    return n;
  }
  return 0;
}

void Baton::step() {
  if (agenda_.empty()) return stall("all wait, and nothing will come");
  if (agenda_.first() > time_up_) return stall(too_late(time_up_));
  now_ = agenda_.first();
  guarded(agenda_.take_first());
}

void Baton::guarded(const std::function<void()>& event) {
  try {
    event();
  } catch (...) {
    if (!failed_) failed_ = std::current_exception();
    kill_all();
  }
}

// Workers that hang are killed, as the owner of a job would.
void Baton::stall(const std::string& why) {
  CHECK(!std::exchange(given_up_, true), "threads of killed workers wait for each other");
  time_up_ = Clock::time_point::max();
  for (const Life& l : lives_)
    if (!l.over && !l.hangs && !failed_)
      failed_ = std::make_exception_ptr(Error("the simulated world cannot go on: " + why));
  kill_all();
}

void Baton::kill_all() {
  for (Worker w = 1; w <= lives_.size(); ++w) kill(w);
}

void Baton::run(Clock::time_point time_up) {
  time_up_ = time_up;
  Timeline* const outside = std::exchange(timeline_here, this);  // for the events before the first thread
  const ThreadNumber first = next();
  if (first) runner(first).strand.resume(outside_);
  timeline_here = outside;
  current_ = 0;
  for (const auto& r : runners_) r->strand.drop_fiber();
  for (std::thread& t : mains_) t.join();
  mains_.clear();
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

// ---- fates ------------------------------------------------------------------------------------------------

int Baton::hangs(Worker w) const { return life(w).hangs; }
bool Baton::killed(Worker w) const { return life(w).killed; }

void Baton::kill(Worker w) {
  Life& l = life(w);
  if (l.killed) return;
  l.killed = true;
  l.unheard.clear();
  l.hangs = std::min(l.hangs, 1), wake(w);
  for (ThreadNumber n : l.threads) rouse(n);
}

void Baton::hang(Worker w) {
  if (life(w).killed || life(w).hangs++ > 0) return;
  life(w).hung.emplace_back(now_, Clock::time_point::max());
}

Clock::duration Baton::stopped_since(Clock::time_point t) const {
  Clock::duration sum{};
  for (const auto& [from, until] : life(here()).hung)
    sum += std::max(std::min(until, now_) - std::max(from, t), Clock::duration());
  return sum;
}

void Baton::wake(Worker w) {
  Life& l = life(w);
  if (l.hangs == 0 || --l.hangs > 0) return;
  l.hung.back().second = now_;
  for (ThreadNumber n : std::exchange(l.held, {})) ready_.push_back(n);
  for (const auto& event : std::exchange(l.unheard, {})) guarded(event);
}

void Baton::hear(Worker w, std::function<void()> event) {
  Life& l = life(w);
  if (l.killed || l.over) return;
  if (l.hangs)
    l.unheard.push_back(std::move(event));
  else
    event();
}

}  // namespace skein::comm::sim
