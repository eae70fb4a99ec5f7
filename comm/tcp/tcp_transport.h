// TCP transport: sealed messages over one authenticated connection a pair of ranks.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/join/liveness.h"
#include "comm/transport.h"

namespace skein::comm {

class TcpPeer;

// The part of a process's transport that reaches ranks by TCP. No byte is believed, and nothing is allocated,
// before it is proved to be the next that this peer has sent; a connection on which something else comes
// ends, as a lost peer. Any thread may call progress(); after start(), one of its own keeps the connections
// busy while none does because the ranks compute.
class TcpEndpoints {
 public:
  // `lines`: one for each rank to be reached, which `live` watches by another connection.
  TcpEndpoints(std::map<Rank, Line> lines, Mailbox&, Liveness& live, int64_t in_flight);
  ~TcpEndpoints();  // flushes
  void start();

  Endpoint& to(Rank);
  bool reaches(Rank r) const { return peers_.count(r) > 0; }
  void progress();
  // Waits until all that was sent is with the kernel, except for the dead.
  void flush();
  // To be called after the goodbyes: waits until all living peers have confirmed them, but only five seconds,
  // because a peer may be stopped. What is unread when a connection is closed makes the kernel drop what is
  // still on its way.
  void await_confirmation();
  // Polls for a short time, then sleeps until a message of this key is there, anything arrives, or `until`.
  void nap(const Key&, Clock::time_point until);
  void wake();                       // ends all naps
  std::string describe(Rank) const;  // "tcp, sealed with AES-256-GCM"

 private:
  friend class TcpPeer;
  struct Waits;
  // The caller holds the lock.
  void turn();      // one round of progress
  void give_way();  // decides which messages of rounds may move
  void progress_until(Clock::duration at_most, const std::function<bool()>& done);
  void keep_busy();  // the thread, until stop_
  bool needs_turns() const;
  void stir();  // whoever is at hand is to look at the peers once more

  Mailbox& box_;
  Liveness& live_;
  const int64_t in_flight_;
  const Fd bell_;  // an eventfd
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;  // guards the peers
  std::map<Rank, std::unique_ptr<TcpPeer>> peers_;
  const Fd thread_bell_;  // an eventfd
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace skein::comm
