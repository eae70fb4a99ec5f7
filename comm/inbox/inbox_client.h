// InboxClient: the worker's side of an Inbox.
#pragma once
#include <functional>

#include "comm/inbox/inbox_wire.h"

namespace skein::comm {

// Asks, and repeats itself with the same sequence and a back-off until it is acknowledged. It speaks to all
// addresses of the invitation until one answers. Sequences begin with the clock, so a worker that is started
// anew goes on where no earlier one has been. One thread.
class InboxClient {
 public:
  InboxClient(const Invitation&, const std::string& job_key, int worker);

  // The sequence that the next request will have.
  int64_t coming() const { return now_.sequence + 1; }
  // Returns its sequence when the inbox has it; its turn comes later. Throws Timeout after `deadline`
  // seconds. Now and then it calls `meanwhile`, which may throw, say because the server is known to be dead.
  int64_t ask(uint16_t kind, int32_t argument = 0, double deadline = 60,
              const std::function<void()>& meanwhile = {});

  // The same in steps, for a thread that has other work: begin, then acknowledged() until it says so. It
  // hears, and says again what is due; it never waits. descriptor() is readable when there is something to
  // hear.
  int64_t begin(uint16_t kind, int32_t argument = 0);
  bool acknowledged();
  Clock::time_point due() const { return due_; }
  int descriptor() const { return socket_.get(); }
  int64_t repeats() const { return repeats_; }

 private:
  void say();
  bool heard();
  struct Address {
    uint32_t host;  // network order
    uint16_t port;
  };
  const Seal seal_;
  Fd socket_;
  std::vector<Address> servers_;  // one, once it has answered
  bool chosen_ = false, open_ = false;
  Datagram now_;
  Clock::time_point due_{};
  Clock::duration patience_{};
  int64_t repeats_ = 0;
};

}  // namespace skein::comm
