// Ending: when wards have to end, and how they are made to.
#pragma once
#include <optional>

#include "apps/launch/crew/ward.h"

namespace skein::apps {

class Ending {
 public:
  // `patience`: how many seconds wards may take that are left when the others have finished.
  Ending(Wards& wards, double patience);

  void ask() { asked_ = comm::Clock::now(); }  // the wards have been asked to end, by a signal
  bool asked() const { return asked_ != comm::Clock::time_point{}; }
  comm::Clock::duration since_asked() const { return comm::Clock::now() - asked_; }
  // The wards that are left get time to notice what happened and to save.
  void soon();                   // from now on
  void soon_after(const Ward&);  // from the end of this one
  // From now on they are killed, until they have ended.
  void kill_all();
  bool kills() const { return kills_; }
  // To be called again and again. `others_are_through`: the wards that are left no longer work for the job.
  void enforce(bool others_are_through);
  void delay(comm::Clock::duration);  // so long this process stood still, which counts for no timeout

 private:
  void leave_behind();
  Wards& wards_;
  const comm::Clock::duration patience_;
  comm::Clock::time_point asked_{}, end_by_ = comm::Clock::time_point::max();
  std::optional<comm::Clock::time_point> through_;  // since when the others have finished
  comm::Clock::time_point killed_{};                // when kill_all() was first called
  bool kills_ = false;
};

}  // namespace skein::apps
