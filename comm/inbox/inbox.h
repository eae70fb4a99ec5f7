// Inbox: a ready worker sends one small UDP datagram, and workers are served strictly in order of arrival.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <optional>

#include "comm/inbox/datagrams.h"
#include "comm/inbox/inbox_wire.h"
#include "comm/refusals.h"
#include "comm/threads.h"

namespace skein::comm {

struct Request {
  int worker = 0;
  uint16_t kind = 0;
  int32_t argument = 0;
  int64_t sequence = 0;  // also the step of the messages that belong to this turn
};

// How many datagrams came, by what became of them. Only accepted ones change anything.
struct InboxCounts {
  int64_t accepted = 0;
  int64_t duplicates = 0;  // of the worker's latest request, which is acknowledged again
  int64_t replayed = 0;    // of an earlier request
  int64_t superseded = 0;  // a worker's newer request replaced its waiting one
  int64_t length = 0, stranger = 0, version = 0, job = 0, forged = 0;  // stranger: another magic
  int64_t worker = 0;  // genuine, but no worker has this number
  int64_t dropped() const { return replayed + length + stranger + version + job + forged + worker; }
};

struct InboxOptions {
  Secret key = {};           // the job's secret, Communicator::options().key
  int workers = 0;           // these are 0 .. workers - 1
  std::string address = {};  // to listen at; empty: all of this host
  PortRange ports = {};
  Refusals* refusals = nullptr;  // where dropped datagrams are counted, too; it must outlive the inbox
};
class Communicator;
// For an inbox beside this communicator.
InboxOptions inbox_beside(const Communicator&, int workers);

// The server's side. A thread of its own moves each request exactly once from the kernel's buffer into
// the queue and acknowledges it; it never waits for the server. At most one request of each worker is in
// the queue. Thread-safe.
class Inbox {
 public:
  explicit Inbox(InboxOptions);  // throws Error if the port is taken
  ~Inbox();
  Inbox(const Inbox&) = delete;

  // What InboxClient needs; the workers learn it over their communicator.
  Invitation invitation() const;
  // The request that has waited longest. Empty if none came before `until` or wake().
  std::optional<Request> next(Clock::time_point until);
  // Drops the request of a lost worker. If it comes back, even as a new process, it is served.
  void forget(int worker);
  void wake();  // ends the current next(), or else the coming one
  InboxCounts counts() const;

 private:
  void receive();
  void receive_simulated();
  void look_at(const uint8_t* at, size_t bytes, const sockaddr_in* from);
  void enter_all();
  bool enter(const Datagram&);  // true: to be acknowledged

  const InboxOptions o_;
  const std::string salt_;
  const Seal seal_;
  Fd socket_;
  std::unique_ptr<DatagramPort> simulated_;  // in its place, in a simulated world
  int port_ = 0;
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  Condition changed_;
  bool woken_ = false;
  std::deque<Request> queue_;
  struct Genuine {
    Datagram datagram;
    const sockaddr_in* from;  // null: not to be acknowledged
  };
  struct {
    std::vector<Genuine> genuine;
    InboxCounts bad;  // what was not
  } batch_;           // that has just come; the receiving thread's
  struct Accepted {
    int64_t last = -1;   // sequence
    bool waits = false;  // a request is in the queue
  };
  std::vector<Accepted> accepted_;  // by worker
  InboxCounts counts_;
  Thread thread_;
};

}  // namespace skein::comm
