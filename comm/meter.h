// Meter: what a rank sent, how long its transfers were under way, and how long its work stood still for them.
#pragma once
#include <atomic>
#include <deque>
#include <limits>
#include <map>
#include <thread>

#include "comm/trace.h"

namespace skein::comm {

// Where the time and the bytes went, while the meter was on.
struct Traffic {
  int64_t messages = 0, bytes = 0;  // sent; bytes also where memory is shared and nothing need be
  double waited = 0;                // seconds blocked for transfers
  double in_flight = 0;             // seconds in which any transfer was under way
};

// The length of a union of intervals, which may come in almost any order.
class Cover {
 public:
  void add(double begin, double end);
  double length() const;

 private:
  static constexpr size_t kParts = 256;  // more are folded into one number, the oldest first
  std::map<double, double> parts_;       // begin and end, disjoint
  double folded_ = 0, folded_until_ = -std::numeric_limits<double>::infinity();
};

// One for a rank's communicator, its groups and its twins. Bytes and messages of all threads count; transfers
// and waits only those of the thread that made the meter, which is the one that computes. A transfer is a
// collective from its beginning until the last message it needs has come, or a push until the arrival of what
// is taken under the same tag and step; a wait is always part of one. Thread-safe. All times are the
// transport's.
class Meter {
 public:
  // Off, nothing that begins is counted. Returns what it was.
  bool turn(bool on);
  // From now on spans of transfers and waits go there; null: nowhere. It must outlive the communication.
  void record(Trace* trace);
  Traffic traffic() const;

  void sent(int64_t bytes);
  void moved(
      int64_t bytes);  // read from or written to a peer's memory: as many as would have been sent without
  void pushed(uint32_t communicator, const Header&, double now);
  void took(uint32_t communicator, const Message&);
  bool counts() const;  // what begins now, on this thread
  void transfer(const char* name, double began, double landed, int64_t bytes);
  void blocked(const char* name, Rank from, int64_t step, double began, double ended);

 private:
  struct Flight {
    int64_t step;
    double began;
  };
  static constexpr size_t kFlights = 64;  // of one tag that may be under way; the oldest are forgotten
  void flew(const Span&);                 // under the lock

  const std::thread::id computes_ = std::this_thread::get_id();
  std::atomic<bool> on_{true};
  std::atomic<int64_t> messages_{0}, bytes_{0};
  mutable std::mutex mutex_;
  std::map<std::pair<uint32_t, Tag>, std::deque<Flight>> flights_;
  Cover in_flight_;
  double waited_ = 0;
  Trace* trace_ = nullptr;
};

// A meter is on while this lives, and as it was before afterwards.
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
