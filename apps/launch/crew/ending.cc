// Deadlines of wards, and the signals that end them.
#include "apps/launch/crew/ending.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace skein::apps {
namespace {

using comm::Clock;

// How long the others get after a ward has failed: they must first miss a killed worker, while one that ended
// with an error has told its peers.
constexpr auto kGraceAfterKill = std::chrono::seconds(180), kGraceAfterError = std::chrono::seconds(30);
constexpr auto kLastOrder = std::chrono::seconds(2);  // for a ward that is ordered to kill its workers
// After SIGKILL, in case the process hangs in the kernel.
constexpr auto kUnkillable = std::chrono::seconds(10);

}  // namespace

Ending::Ending(Wards& wards, double patience)
    : wards_(wards),
      patience_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience))) {}

void Ending::soon() { end_by_ = std::min(end_by_, Clock::now() + Clock::duration(kGraceAfterError)); }

void Ending::soon_after(const Ward& w) {
  const auto grace = w.is_lost() ? Clock::duration(kGraceAfterKill) : Clock::duration(kGraceAfterError);
  end_by_ = std::min(end_by_, w.ended_at + grace);
}

// A ward that takes orders kills its own workers first, and does so, too, when it loses us.
void Ending::kill_all() {
  if (!kills_) killed_ = Clock::now();
  kills_ = true;
  for (Ward& w : wards_) {
    if (w.pid <= 0 || w.ended) continue;
    if (w.orders) {
      w.order("signal " + std::to_string(SIGKILL));
      w.orders = {};
      w.condemned = Clock::now();
    } else if (Clock::now() - w.condemned > kLastOrder) {
      kill(w.pid, SIGKILL);
    }
  }
}

// Stops waiting for processes that even SIGKILL does not end; they go when the kernel releases them.
void Ending::leave_behind() {
  for (Ward& w : wards_) {
    if (w.ended) continue;
    std::fprintf(stderr, "%s (process %d) cannot be killed now and is left behind\n", w.name.c_str(),
                 int(w.pid));
    w.ended = true;
    w.status = SIGKILL;
  }
}

void Ending::enforce(bool others_are_through) {
  if (kills_) return Clock::now() - killed_ > kUnkillable ? leave_behind() : kill_all();
  if (!others_are_through)
    through_.reset();
  else if (!through_)
    through_ = Clock::now();
  if (through_ && Clock::now() - *through_ > patience_) {
    for (const Ward& w : wards_)
      if (!w.ended)
        std::fprintf(stderr, "%s has not ended %g s after the others and is killed\n", w.name.c_str(),
                     std::chrono::duration<double>(patience_).count());
    return kill_all();
  }
  if (end_by_ == Clock::time_point::max()) return;
  const bool only_stopped =
      std::all_of(wards_.begin(), wards_.end(), [](const Ward& w) { return w.ended || w.stopped; });
  if (Clock::now() >= end_by_ || only_stopped) kill_all();
}

void Ending::delay(Clock::duration held) {
  if (asked()) asked_ += held;
  if (end_by_ != Clock::time_point::max()) end_by_ += held;
  if (through_) *through_ += held;
  killed_ += held;
}

}  // namespace skein::apps
