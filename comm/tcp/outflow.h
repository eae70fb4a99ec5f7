// Outflow: the messages to one peer, sealed one after the other as its socket takes them.
#pragma once
#include <deque>
#include <vector>

#include "comm/join/line.h"
#include "comm/transport.h"

namespace skein::comm {

// On the wire a message is its header and a tag, then, unless it is empty, its payload and a tag.
inline constexpr size_t kSealedHeader = sizeof(Header) + kTagBytes;

class Outflow {
 public:
  explicit Outflow(Cipher seal) : seal_(std::move(seal)) {}
  void add(const Header&, Tensor payload);
  // Writes without waiting, a few buffers at most, and no further than to the next round. False: the
  // connection has failed, and errno says how.
  bool write(const Fd&);
  bool idle() const { return queue_.empty() && at_ == end_; }
  std::optional<int64_t> round() const;         // of the message that is half written, or else next
  int64_t written() const { return written_; }  // bytes so far
  int64_t waiting() const { return waiting_; }  // bytes of payloads not yet sealed
  void forget();
  const Cipher& cipher() const { return seal_; }

 private:
  void seal_some();
  struct Queued {
    Header header;
    Tensor payload;
  };
  Cipher seal_;
  std::deque<Queued> queue_;
  int64_t waiting_ = 0;
  std::vector<char> sealed_;
  size_t at_ = 0, end_ = 0;       // the part of sealed_ that is still to be written
  std::optional<int64_t> round_;  // of all that is in sealed_
  int64_t written_ = 0;
};

}  // namespace skein::comm
