// InboxClient: the worker's side of an Inbox.
#pragma once
#include <functional>

#include "comm/inbox/inbox_wire.h"
#include "comm/threads.h"

namespace skein::comm {

// Sends a request and repeats it, with the same sequence and a growing pause, until it is acknowledged. It
// tries all addresses of the invitation until one answers. Sequences begin with the clock, so that a
// restarted worker never uses one again. For one thread.
class InboxClient {
 public:
  InboxClient(const Invitation&, const Secret& job_key, int worker);

  // The sequence that the next request will have.
  int64_t coming() const { return now_.sequence + 1; }
  // Returns the request's sequence when the inbox has it; its turn comes later. Throws Timeout after
  // `deadline` seconds. Calls `meanwhile` now and then, which may throw, for example because the
  // server has died.
  int64_t ask(uint16_t kind, int32_t argument = 0, double deadline = 60,
              const std::function<void()>& meanwhile = {});

  // The same in steps, for a thread that has other work: begin(), then acknowledged() until it returns
  // true. acknowledged() receives and repeats, but never waits. descriptor() is readable when there is
  // something to receive.
  int64_t begin(uint16_t kind, int32_t argument = 0);
  bool acknowledged();
  int descriptor() const { return socket_.get(); }
  void wait(Clock::time_point until);  // for something to receive
  int64_t repeats() const { return repeats_; }

 private:
  void say();
  bool heard();
  bool is_answer(const uint8_t* bytes, size_t n, const sockaddr_in& from);
  struct Address {
    uint32_t host;  // network order
    uint16_t port;
  };
  const Seal seal_;
  Fd socket_;
  std::unique_ptr<DatagramPort> simulated_;  // in its place, in a simulated world
  std::vector<Address> servers_;             // only one after it has answered
  bool chosen_ = false, open_ = false;
  Datagram now_;
  Clock::time_point due_{};
  Clock::duration patience_{};
  int64_t repeats_ = 0;
};

}  // namespace skein::comm
