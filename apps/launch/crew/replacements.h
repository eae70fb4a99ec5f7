// Replacements: who is a member of a job, and who takes the place of a lost worker (Loss::kIsReplaced).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "apps/launch/crew/ending.h"
#include "apps/launch/crew/restarts.h"

namespace skein::apps {

class Replacements {
 public:
  // Fresh processes have this signal mask.
  Replacements(Wards& wards, Ending& ending, const sigset_t& mask)
      : wards_(wards), ending_(ending), mask_(mask) {}

  // When a member has died, and some time before the job ends, the child that takes its place runs `become`,
  // after a pause. A worker is not replaced if it left, met a usage error, or failed by itself before it was
  // a member. Each decision is a line on stderr.
  void replace_by(Restarts, std::function<void(size_t number)> become);
  // Receives reports for the program that gives the orders: those of the wards, and kDeserted.
  std::function<void(const std::string&)> reported;
  // Takes a report as if the ward had sent it. Where there is `reported`, claims are for those who get it.
  void take_report(Ward&, const std::string& report);
  void take_reports();                        // those that the wards have sent
  void answer(const std::string& words);      // the register's, to all wards
  void suspend(bool on) { suspended_ = on; }  // by an order; otherwise this process itself stands still
  // The job has ended, or no member is left to admit newcomers: fresh workers would wait in vain.
  void finish();
  // To be called again and again: decides about the dead and starts fresh processes. `has_superior`: another
  // program gives the orders, and may know of members elsewhere.
  void replace_the_dead(bool has_superior);

  const std::string& place() const { return place_; }  // of the job, as the last member to report has said
  bool begun() const { return begun_; }                // there has been a member
  bool finished() const { return finished_; }
  bool expects_fresh() const;  // a death is not decided, or a fresh process is still to be started
  bool all_left() const;       // whether all wards have left the job, or were lost after others had left it
  // 130 if the job was interrupted, 0 if any worker has finished it, else the status of the first failure.
  int status() const;

 private:
  void take_claim(Ward&, const std::string& words);
  void judge(Ward&);
  std::string what_follows(Ward&);
  std::string seat_is_filled(Ward&, comm::Clock::time_point since, comm::Clock::duration lived);
  bool deserted() const;
  bool is_over() const { return ending_.kills() || ending_.asked() || finished_; }

  Wards& wards_;
  Ending& ending_;
  const sigset_t& mask_;
  bool begun_ = false;
  bool finished_ = false;  // a worker has completed the job, or no worker is left that could
  bool suspended_ = false;
  bool deserted_ = false;  // no ward is a member, and the program that gives the orders knows
  std::string place_;
  std::map<uint32_t, std::string> kept_;  // the first claim of each epoch of the membership
  Restarts restarts_;
  std::function<void(size_t)> become_;
};

}  // namespace skein::apps
