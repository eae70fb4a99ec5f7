// Inbox: workers that are ready say so by one small UDP datagram, and are served strictly in order of
// arrival.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/inbox/datagrams.h"
#include "comm/inbox/inbox_wire.h"

namespace skein::comm {

struct Request {
  int worker = 0;
  uint16_t kind = 0;
  int32_t argument = 0;
  int64_t sequence = 0;  // the same number names what moves in this turn by other ways
};

// What came, by what became of it. Only `accepted` have ever changed anything.
struct InboxCounts {
  int64_t accepted = 0;
  int64_t duplicates = 0;  // of the worker's last request: acknowledged again
  int64_t replayed = 0;    // of an earlier one
  int64_t superseded = 0;  // a worker's newer request took the place of its waiting one
  int64_t length = 0, stranger = 0, version = 0, job = 0, forged = 0;  // stranger: another magic
  int64_t worker = 0;                                                  // genuine, but of no worker there is
  int64_t dropped() const { return replayed + length + stranger + version + job + forged + worker; }
};

struct InboxOptions {
  std::string key = {};  // the job's: Communicator::options().key
  int workers = 0;       // these are 0 .. workers - 1
  int port = 0;          // 0: any free one
};

// The server's side. A thread of its own empties the kernel's buffer into the queue, each request exactly
// once, and acknowledges; it never waits for whoever serves. At most one request of each worker waits.
// Thread-safe.
class Inbox {
 public:
  explicit Inbox(InboxOptions);  // Error: the port cannot be had
  ~Inbox();
  Inbox(const Inbox&) = delete;

  // For InboxClient; to be told to the workers over their communicator.
  Invitation invitation() const;
  // The request that has waited longest; empty: none came before `until`, or wake().
  std::optional<Request> next(Clock::time_point until);
  // Drops what waits of a worker that is lost. Should it come again, as a new process too, it is served.
  void forget(int worker);
  void wake();  // ends a next(), the one under way or the coming one
  InboxCounts counts() const;

 private:
  void receive();
  bool judge(const Datagrams::Arrived&, Datagram&, InboxCounts&) const;  // true: genuine, and read
  bool enter(const Datagram&);                                           // true: is to be acknowledged

  const InboxOptions o_;
  const std::string salt_;
  const Seal seal_;
  Fd socket_;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::deque<Request> queue_;
  std::vector<int64_t> last_;  // sequence accepted last, by worker
  std::vector<bool> waits_;    // a request of this worker is in the queue
  InboxCounts counts_;
  std::thread thread_;
};

}  // namespace skein::comm
