// Replacing: a supervisor whose workers are stand-ins, forked from the test, that report what
// real ones would.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>

#include "apps/launch/crew/superior.h"
#include "apps/launch/crew/supervisor.h"

namespace skein::apps {

using namespace std::chrono_literals;

inline constexpr int kSeats = 8;

// What all stand-ins of a test see.
struct Stage {
  std::atomic<int> lives[kSeats];    // processes started in each seat
  std::atomic<int> members[kSeats];  // of them those that became members
  std::atomic<bool> judged;          // see let_go_when_judged()
  std::atomic<char> kept[kSeats];    // what each was told that the register keeps
  char place[64];                    // where the last fresh one was told to find the job
};

class Replacing : public ::testing::Test {
 protected:
  Replacing()
      : stage(*static_cast<Stage*>(mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, kShared, -1, 0))) {}
  ~Replacing() override { munmap(&stage, sizeof(Stage)); }

  // What a seat's process does in its n-th life, counted from 1. If it returns, the process ends
  // with status 0.
  using Life = std::function<void(int seat, int life)>;
  // Runs so many seats and returns the job's status.
  int run(int seats, const Life& live) {
    const auto become = [this, live](size_t seat) {
      alarm(50);
      live(int(seat), ++stage.lives[seat]);
      _exit(0);
    };
    ::testing::internal::CaptureStderr();
    Supervisor team(Loss::kIsReplaced, 0.3);
    for (int i = 0; i < seats; ++i) team.start(text("worker ", i), {.reports = true}, become);
    team.replacements().replace_by(Restarts(times, pace), [&](size_t seat) {
      std::strncpy(stage.place, team.replacements().place().c_str(), sizeof stage.place - 1);
      become(seat);
    });
    if (orders) team.obey(std::move(orders));
    if (!is_top)
      team.replacements().reported = [this](const std::string& report) { reports.push_back(report); };
    team.tick = [&] { return !tick || tick(team); };
    const int status = team.run();
    said = ::testing::internal::GetCapturedStderr();
    return status;
  }

  // For stand-ins.
  void join(int seat) const {
    report_membership(text("seat ", seat));
    ++stage.members[seat];
  }
  template <class Condition>
  static void wait_until(Condition c) {
    while (!c()) usleep(2000);
  }
  // The supervisor lets them go when it has decided what follows the ends in these seats.
  void let_go_when_judged(const std::vector<size_t>& seats) {
    tick = [this, seats](Supervisor& team) {
      const auto is_settled = [&](size_t s) { return team.wards()[s].judged && !team.wards()[s].fresh_at; };
      if (std::all_of(seats.begin(), seats.end(), is_settled)) stage.judged = true;
      return true;
    };
  }
  void wait_for_judgement() const {
    wait_until([&] { return bool(stage.judged); });
  }
  void wait_for_member(int seat, int n) const {
    wait_until([&] { return stage.members[seat] >= n; });
  }
  static void die() { kill(getpid(), SIGKILL); }

  bool has_said(const std::string& line) const { return said.find(line) != std::string::npos; }

  static constexpr int kShared = MAP_SHARED | MAP_ANONYMOUS;
  Stage& stage;
  int times = 3;
  Restarts::Pace pace{.first = 20ms, .longest = 40ms};
  bool is_top = false;  // there is no supervisor above this one, so it keeps the register
  comm::Fd orders;
  std::function<bool(Supervisor&)> tick;
  std::vector<std::string> reports;
  std::string said;
};

}  // namespace skein::apps
