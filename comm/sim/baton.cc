// A signal per thread: who sleeps picks who goes on, runs the events in between, and hands over.
#include "comm/sim/baton.h"

#include <utility>

#include "engine/base.h"

namespace skein::comm::sim {
namespace {

// How long a thread sleeps that must not and cannot be unwound, before it looks again.
constexpr auto kLastMoments = std::chrono::milliseconds(1);

}  // namespace

void Baton::end() {
  kill_all();
  try {
    run(Clock::time_point::max());
  } catch (...) {}
}

Baton::Alarm Baton::at(Clock::time_point t, std::function<void()> event) {
  return events_.emplace(Alarm(std::max(t, now_), ++events_made_), std::move(event)).first->first;
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
  const ThreadNumber n = enlist(w);
  mains_.emplace_back([this, w, n, main = std::move(main), ended = std::move(ended)] {
    live(n, [&] {
      try {
        if (!killed(w)) main();
      } catch (const Killed&) {
      } catch (...) {
        if (!failed_) failed_ = std::current_exception();
      }
      life(w).over = true;
      ended();
    });
  });
  return w;
}

void Baton::live(ThreadNumber n, const std::function<void()>& f) {
  Runner& me = [&]() -> Runner& {
    const std::lock_guard lock(growing_);
    return runner(n);
  }();
  timeline_here = this;
  me.go.take();
  try {
    f();
  } catch (const Killed&) {}
  me.over = true;
  ++over_;
  for (ThreadNumber j : me.joiners) rouse(j);
  pass(n);
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
  const Alarm alarm(std::max(until, now_), ++events_made_);
  if (until != Clock::time_point::max()) events_.emplace(alarm, [this, me] { rouse(me); });
  pass(me);
  events_.erase(alarm);
  if (life(runner(me).worker).killed && ending == Ending::kMayThrow && std::uncaught_exceptions() == 0)
    throw Killed();
}

// ---- who is next --------------------------------------------------------------------------------------------

void Baton::pass(ThreadNumber from) {
  current_ = 0;
  const bool ends = runner(from).over;
  const ThreadNumber to = next();
  if (to == from) return;
  if (!to) return finished_.give();
  if (ends) return runner(to).go.give();
  runner(to).go.give();
  runner(from).go.take();
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
  if (events_.empty()) return stall("all wait, and nothing will come");
  const auto first = events_.begin();
  if (first->first.first > time_up_) return stall("its time is up, and workers are still at work");
  now_ = first->first.first;
  const auto event = std::move(first->second);
  events_.erase(first);
  guarded(event);
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
  timeline_here = outside;
  if (first) {
    runner(first).go.give();
    finished_.take();
  }
  current_ = 0;
  for (std::thread& t : mains_) t.join();
  mains_.clear();
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

// ---- fates ------------------------------------------------------------------------------------------------

bool Baton::hangs(Worker w) const { return life(w).hangs; }
bool Baton::killed(Worker w) const { return life(w).killed; }

void Baton::kill(Worker w) {
  Life& l = life(w);
  if (l.killed) return;
  l.killed = true;
  l.unheard.clear();
  wake(w);
  for (ThreadNumber n : l.threads) rouse(n);
}

void Baton::hang(Worker w) {
  if (!life(w).killed) life(w).hangs = true;
}

void Baton::wake(Worker w) {
  Life& l = life(w);
  if (!std::exchange(l.hangs, false)) return;
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
