// Trace: what one worker did, and when, as spans of time.
#pragma once
#include <mutex>
#include <vector>

#include "comm/transport.h"

namespace skein::comm {

enum class Track : uint8_t { kCompute, kTransfer, kWaiting };

struct Span {
  Track track = Track::kCompute;
  const char* name = "";      // has static storage
  double begin = 0, end = 0;  // seconds on the transport's clock
  int64_t step = -1;          // a message's; -1: none
  int64_t bytes = -1;
  Rank peer = -1;  // rank in the world
};

// Thread-safe. Holds up to kMost spans and counts what it leaves out.
class Trace {
 public:
  static constexpr size_t kMost = 500'000;
  void add(const Span&);
  std::vector<Span> spans() const;
  int64_t left_out() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
  int64_t left_out_ = 0;
};

}  // namespace skein::comm
