// Inflow: what one peer sends, from its socket to the mailbox.
#pragma once
#include <string>
#include <vector>

#include "comm/mailbox.h"
#include "comm/tcp/outflow.h"

namespace skein::comm {

// Where a stream of sealed messages is read: bytes that have come but were not asked for wait in
// a small buffer.
class Bytes {
 public:
  enum class Got : uint8_t { kAll, kSome, kEnd, kFailed };  // kFailed: errno says how
  // Continues to fill `to` with n bytes; `have` of them are there already. Never waits.
  Got fill(const Fd&, char* to, size_t n, size_t& have);
  bool empty() const { return begin_ == end_; }

 private:
  static constexpr size_t kRoom = 64 << 10;
  std::vector<char> buffer_ = std::vector<char>(kRoom);
  size_t begin_ = 0, end_ = 0;
};

class Inflow {
 public:
  Inflow(Rank peer, Cipher seal, Mailbox& box) : peer_(peer), seal_(std::move(seal)), box_(box) {}
  // Reads what has come, a few messages at most. False: the connection is over, and `why` says how.
  bool read(const Fd&);
  // Whether there is more to do without another byte from the socket.
  bool pending() const { return stage_ == Stage::kRoom || !bytes_.empty(); }
  bool stalled() const { return stage_ == Stage::kRoom; }  // the mailbox had no room
  std::optional<int64_t> round() const { return round_; }  // of the message that has come in part
  int64_t moved() const { return moved_; }                 // bytes that have come so far

  std::string why;       // it ended; empty: in good order, between two messages
  bool forged = false;   // because its bytes were not sealed by the peer
  std::string refusal;   // what the peer is to be told; the reader takes it
  bool goodbye = false;  // the peer said so; the reader is to confirm it, and to take this back

 private:
  enum class Stage : uint8_t { kHeader, kRoom, kPayload };
  bool step(const Fd&, bool& moved);
  bool take_header(const Fd&, bool& moved);
  bool take_payload(const Fd&, bool& moved);
  bool prepare();
  void finish();
  bool arrived(const Fd&, char* to, size_t n, bool& there);
  bool end(const std::string& how);
  bool refuse_forgery();

  const Rank peer_;
  Cipher seal_;
  Mailbox& box_;
  Bytes bytes_;
  Stage stage_ = Stage::kHeader;
  std::optional<int64_t> round_;
  int64_t moved_ = 0;
  struct {
    char sealed_header[kSealedHeader];
    char tag[kTagBytes];
    size_t have = 0, have_tag = 0;  // bytes of the header or the payload, and of the tag behind it
    Header header;
    size_t length = 0;     // of the payload that follows it
    bool landing = false;  // `into` is where the mailbox wants the payload
    Tensor into;
  } now_;  // the message that is coming
};

}  // namespace skein::comm
