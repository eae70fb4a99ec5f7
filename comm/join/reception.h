// Reception: callers of a listening socket are heard side by side until they have proved who they are.
#pragma once
#include <functional>
#include <vector>

#include "comm/join/line.h"
#include "comm/refusals.h"

namespace skein::comm {

// A silent caller delays nobody. It is hung up on after ten seconds, or earlier if there are too many of them: then
// one has to go of the address from which most have come, and of those the oldest, because those of this job say all
// they have to say at once. Who was hung up on may call again; who gave a wrong proof is told so. For one thread.
class Reception {
 public:
  // `listener` must outlive it. Callers for which `welcome` is false are refused unheard.
  Reception(const Fd& listener, Credentials mine, Refusals::Counter& strangers,
            std::function<bool(const Fd&)> welcome = {});

  struct Guest {
    Hello hello;
    Line line;
  };
  // The next caller that has proved that it belongs to this job; empty: none came until then.
  std::optional<Guest> next(Clock::time_point until);

 private:
  struct Caller {
    Fd socket;
    uint32_t address;  // 0: of this host
    std::string salt, said;
    Clock::time_point until;
  };
  void admit_all();
  std::optional<Guest> hear();
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
