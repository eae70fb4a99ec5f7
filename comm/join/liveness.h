// Liveness: one quiet connection per peer, whose hang-up is a death and whose silence is a suspicion.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/join/sockets.h"
#include "comm/mailbox.h"

namespace skein::comm {

// No library below us notices a peer that was stopped or cut off (UCX: not in 70 s), so each rank tells each
// other that it is alive, ten times in the span of silence that counts as death. A thread of its own does so,
// because the compute thread may be busy for longer than that; it does nothing else.
class Liveness {
 public:
  Liveness(Mailbox&, double silence);
  ~Liveness();  // tells the others that the coming hang-up is no death; Kind::kGoodbye was sent before
  void watch(Rank, Fd connection);
  void start();
  // Reads what has come and tells the mailbox who hung up, left, or fell silent. Cheap when called often:
  // looks at most once a millisecond unless `now`. Any thread.
  void check(bool now = false);
  // Tells a rank that its goodbye has come in, and with it all it sent before: it may end now.
  void confirm_goodbye(Rank);
  bool goodbye_confirmed(Rank);  // by that rank, to us

 private:
  struct Peer {
    Rank rank;
    Fd socket;
    Clock::time_point heard;
    bool open = true, bye = false, confirmed = false;
  };
  void beat();
  void read(Peer&);
  Mailbox& box_;
  const double silence_;
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::atomic<int64_t> next_look_{0};
  Clock::time_point looked_ = Clock::now();
  std::mutex stop_mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace skein::comm
