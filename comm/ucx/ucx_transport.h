// UCX transport: messages by RDMA, shared links and between GPUs, pieces straight into the memory
// they are for.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/join/liveness.h"
#include "comm/transport.h"

namespace skein::comm {

// The part of a process's transport that reaches ranks by UCX. Any thread may call progress(); a failure that
// it sees is stored in the mailbox's membership and thrown by the next wait.
class UcxEndpoints {
 public:
  // Collective over `exchange`: every rank calls it. `peers`: the ranks to reach, which `live` watches; each
  // of them names this one, too.
  UcxEndpoints(Exchange& exchange, const std::vector<Rank>& peers, Mailbox&, Liveness& live,
               const TransportOptions&);
  ~UcxEndpoints();  // flushes

  Endpoint& to(Rank);
  bool reaches(Rank) const;
  void land_on(Device);    // DeviceMemory::land_on
  Device landing() const;  // its latest argument
  void progress();
  // Waits until all that was sent has gone out, except to the dead.
  void flush();
  // To be called after the goodbyes: waits until all living peers have confirmed them, but only five seconds,
  // because a peer may be stopped. A message that UCX calls sent may still be on its way, and is lost if the
  // process ends before a slow peer has read it.
  void await_confirmation();
  // Polls for a short time, then sleeps on the worker's descriptor, until a message of this key is there,
  // anything arrives, or `until`.
  void nap(const Key&, Clock::time_point until);
  void wake();  // ends a nap
  // The transports that UCX uses to reach a peer, as UCX prints them: "ucx rc_mlx5/mlx5_0:1".
  std::string lanes(Rank) const;

 private:
  void progress_until(Clock::duration at_most, const std::function<bool()>& done);
  class Peer;
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace skein::comm
