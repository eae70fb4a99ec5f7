// Liveness: a connection per peer that carries only heartbeats. A hang-up is a death, silence becomes one.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "comm/join/line.h"
#include "comm/mailbox.h"
#include "comm/silence.h"

namespace skein::comm {

// UCX does not notice in 70 s that a peer was stopped or cut off, so each rank sends every other one ten
// heartbeats within the shortest silence that counts as death. They have a thread of their own, because the
// compute thread may be busy for longer than that.
class Liveness {
 public:
  Liveness(Mailbox&, SilenceBounds);
  ~Liveness();             // says that the coming hang-up is no death; goodbyes have been sent before
  void watch(Rank, Line);  // of another host: what it says is sealed
  void watch(Rank, Fd connection);  // of this host
  void start();
  // Reads what has come and tells the mailbox which peers hung up, left, or fell silent. Looks at most once a
  // millisecond unless `now`, so it is cheap when called often. For any thread.
  void check(bool now = false);
  // Tells a rank that its goodbye and everything before it have arrived, so that it may end.
  void confirm_goodbye(Rank);
  bool goodbye_confirmed(Rank);  // whether that rank has told us so
  // Asks a rank to let what it sends us wait, or to go on; and whether it has asked us. What it sends may be
  // in the way of what it says on another connection, never on this one.
  void ask_to_wait(Rank, bool wait);
  bool asked_to_wait(Rank r) const { return peer(r).waits; }
  const Fd& socket(Rank) const;  // readable when check() would find something

 private:
  struct Peer {
    Peer(Rank r, Fd s, Silence silent) : rank(r), socket(std::move(s)), silence(silent) {}
    const Rank rank;
    const Fd socket;
    std::optional<Session> seals;
    Silence silence;
    std::string unsent, unread;  // what the socket had no room for; the beginning of a sealed word
    bool open = true, bye = false, confirmed = false;
    std::atomic<bool> waits{false};  // it wants us to
  };
  const Peer& peer(Rank) const;
  void beat();
  void say(Peer&, char);
  void read(Peer&);
  bool hear(Peer&, const char* bytes, size_t n);  // false: the bytes are not what the peer has sealed
  Mailbox& box_;
  const SilenceBounds silence_;
  std::deque<Peer> peers_;
  std::mutex mutex_;         // of what is read
  std::mutex saying_mutex_;  // of what is sent
  std::atomic<int64_t> next_look_{0};
  Clock::time_point looked_ = Clock::now();
  std::mutex stop_mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace skein::comm
