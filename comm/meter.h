// Meter: what a rank sent, how long its transfers were under way, and how long it waited for them.
#pragma once
#include <atomic>
#include <limits>
#include <map>
#include <vector>

#include "comm/threads.h"
#include "comm/trace.h"

namespace skein::comm {

// The bytes and the time of communication, while the meter was on.
struct Traffic {
  int64_t messages = 0, bytes = 0;  // sent; through shared memory, the bytes that would have been sent
  int64_t to_others = 0;            // of the messages, those that did not go to this rank itself
  double waited = 0;                // seconds blocked for transfers
  double in_flight = 0;             // seconds in which any transfer was under way
};

// The length of a union of intervals, which may be added in almost any order.
class Cover {
 public:
  void add(double begin, double end);
  double length() const { return folded_ + in_parts_; }

 private:
  static constexpr ptrdiff_t kParts = 256;  // more are folded into one number, the oldest first
  struct Part {
    double begin, end;
  };
  std::vector<Part> parts_;  // in order, disjoint
  double in_parts_ = 0;      // their length together
  double folded_ = 0, folded_until_ = -std::numeric_limits<double>::infinity();
};

// A rank's communicator shares one with its groups and twins. It counts the bytes and messages of all
// threads, but transfers and waits only on the thread that made it, which is the one that computes. A
// transfer is either a collective, from its beginning to the arrival of its last message, or an exchange,
// from a push to the arrival of the message that is taken under the same tag and step. Waits happen during
// transfers. All times are the transport's. Thread-safe.
class Meter {
 public:
  // While it is off, what begins is not counted; what a collective sends, ever, belongs to its beginning.
  // Returns the setting before.
  bool turn(bool on);
  bool on() const { return on_; }
  // From now on adds the spans of transfers and waits to this trace, which must outlive the communication;
  // null: to none.
  void record(Trace* trace);
  Traffic traffic() const;

  void sent(int64_t bytes, bool to_itself, bool counted);  // `counted`: the meter was on when it began
  // The bytes that reading or writing a peer's memory has saved.
  void moved(int64_t bytes, bool counted);
  void moved(int64_t bytes) { moved(bytes, on_); }
  void pushed(uint32_t communicator, const Header&, double now);
  void took(uint32_t communicator, const Message&);
  bool counts() const;  // whether what begins now on this thread is counted
  void transfer(const char* name, double began, double landed, int64_t bytes);
  void blocked(const char* name, Rank from, int64_t step, double began, double ended);

 private:
  struct Transfer {
    int64_t step;
    double began;
  };
  // Those of one tag that may be under way. The oldest are forgotten.
  struct Transfers {
    static constexpr size_t kMost = 64;
    const Transfer* find(int64_t step) const;
    void add(const Transfer&);

   private:
    Transfer last_[kMost];
    size_t added_ = 0;
    int64_t highest_ = -1;  // step of all that were added
  };
  void arrived(const Span&);  // under the lock

  const uint64_t computes_ = this_thread();
  std::atomic<bool> on_{true};
  std::atomic<int64_t> messages_{0}, bytes_{0}, to_others_{0};
  mutable std::mutex mutex_;
  std::map<std::pair<uint32_t, Tag>, Transfers> transfers_;
  Cover in_flight_;
  double waited_ = 0;
  Trace* trace_ = nullptr;
};

// Turns a meter on for as long as it lives.
class Counted {
 public:
  explicit Counted(Meter& m) : meter_(m), before_(m.turn(true)) {}
  ~Counted() { meter_.turn(before_); }
  Counted(const Counted&) = delete;

 private:
  Meter& meter_;
  const bool before_;
};

}  // namespace skein::comm
