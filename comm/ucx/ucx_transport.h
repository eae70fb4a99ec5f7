// UCX transport: messages between hosts as active messages, pieces straight into the memory they are for.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/join/choose_network.h"
#include "comm/join/liveness.h"
#include "comm/transport.h"

namespace skein::comm {

// The part of a process's transport that reaches ranks by UCX. Progress is made by whoever calls; a failure
// seen there is stored in the mailbox's membership and thrown by the next wait.
class UcxDoors {
 public:
  // Collective over `exchange`: every rank calls it. The ranks to reach; each of them names us likewise.
  struct Peers {
    std::vector<Rank> far;   // a TCP connection to each of them is handed to `live`
    std::vector<Rank> near;  // of this host, watched by other means: reached for what lies on devices
  };
  UcxDoors(Exchange& exchange, const Peers&, Mailbox&, Liveness& live, const TransportOptions&,
           const NetworkChoice&);
  ~UcxDoors();  // flushes

  Endpoint& to(Rank);
  bool reaches(Rank) const;
  void land_on(Device);    // DeviceMemory::land_on
  Device landing() const;  // its latest argument
  void progress();
  // Waits until all that was sent has gone out, except to the dead.
  void flush();
  // After our goodbyes: waits until all living peers have them, or five seconds, as a peer may be stopped.
  // UCX calls a message sent when it is on its way, and a peer that is slow to read loses what is on its way
  // from a process that has ended.
  void await_confirmation();
  // Polls for a little, then sleeps on the worker's descriptor, until a message of this key is there,
  // anything arrives, or `until`.
  void nap(const Key&, Clock::time_point until);
  void wake();  // ends a nap
  // The transports of the connection to a peer, as UCX prints them: "ucx tcp/eth0".
  std::string lanes(Rank) const;
  int64_t strangers() const;

 private:
  void progress_until(Clock::duration at_most, const std::function<bool()>& done);
  class Door;
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace skein::comm
