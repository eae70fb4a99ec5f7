// Refusals: what came over the network and did not belong to this job.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace skein::comm {

// What a rank has dropped, by what it was. None of it has changed anything.
struct Refused {
  int64_t callers = 0;    // connections whose other end did not prove that it belongs to this job
  int64_t messages = 0;   // that do not begin like ours
  int64_t forged = 0;     // changed, repeated, left out or moved on their way; that connection ends
  int64_t truncated = 0;  // connections that ended in the middle of a message
  int64_t datagrams = 0;  // forged, replayed or foreign ones at a parameter server's inbox
  int64_t sum() const { return callers + messages + forged + truncated + datagrams; }
  Refused& operator+=(const Refused&);
  std::string words()
      const;  // "2 callers without this job's key, 1 forged message"; empty if there was nothing
};

// A rank's counters. Thread-safe.
class Refusals {
 public:
  using Counter = std::atomic<int64_t>;
  Counter callers{0}, messages{0}, forged{0}, truncated{0}, datagrams{0};
  Refused counts() const { return {callers, messages, forged, truncated, datagrams}; }
  void add(const Refused& r) {
    callers += r.callers, messages += r.messages, forged += r.forged, truncated += r.truncated;
    datagrams += r.datagrams;
  }
};

}  // namespace skein::comm
