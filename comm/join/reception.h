// Reception: callers of a listening socket are heard side by side until they have proved who they are.
#pragma once
#include <functional>
#include <vector>

#include "comm/join/line.h"
#include "comm/refusals.h"

namespace skein::comm {

inline constexpr double kReview = 0.1;  // seconds between two looks whether there is a point in waiting

// A silent caller does not delay others. The connection is closed after ten seconds, or earlier if there
// are too many callers: then the oldest one of the address with the most callers goes, because callers of
// this job send all their words at once. They may call again. A wrong proof is answered. Only one thread
// may use it.
class Reception {
 public:
  // `listener` must outlive it. Callers for which `welcome` is false are refused unheard.
  Reception(const Fd& listener, Credentials mine, Refusals::Counter& strangers,
            std::function<bool(const Fd&)> welcome = {});

  struct Guest {
    Hello hello;
    Line line;
  };
  // The next caller that has proved that it belongs to this job; empty: none came until then, or until `bell`
  // could be read.
  std::optional<Guest> next(Clock::time_point until, const Fd* bell = nullptr);

 private:
  struct Caller {
    Fd socket;
    uint32_t address;  // 0: of this host
    std::string salt, said;
    Clock::time_point until;
  };
  void admit_all();
  std::optional<Guest> hear();
  bool is_stranger(const Caller&, bool there) const;
  void refuse(size_t caller);
  void make_room();
  const Fd& listener_;
  const Credentials mine_;
  Refusals::Counter& strangers_;
  const std::function<bool(const Fd&)> welcome_;
  const size_t most_;
  std::vector<Caller> callers_;  // the oldest first
};

}  // namespace skein::comm
