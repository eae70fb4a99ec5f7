// Inflow: header, room, payload; nothing is used before it has been opened.
#include "comm/tcp/inflow.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/notice.h"

namespace skein::comm {
namespace {

constexpr int kMostSteps = 64;  // of one call of read(), so that one peer does not keep others waiting

// Bytes of the payload behind this header; -1: it contradicts itself.
int64_t length_of(const Header& h) {
  if (h.bytes < 0 || h.pieces == 0 || h.piece >= h.pieces) return -1;
  const Piece p = piece_of(h);
  const int64_t n = p.end - p.begin;
  return n <= kLongestNotice || h.kind == Kind::kData ? std::max<int64_t>(n, -1) : -1;
}

}  // namespace

Bytes::Got Bytes::fill(const Fd& socket, char* to, size_t n, size_t& have) {
  while (have < n) {
    if (begin_ < end_) {
      const size_t more = std::min(n - have, end_ - begin_);
      std::memcpy(to + have, buffer_.data() + begin_, more);
      begin_ += more, have += more;
      continue;
    }
    const bool straight = n - have >= kRoom;
    const ssize_t got =
        recv(socket.get(), straight ? to + have : buffer_.data(), straight ? n - have : kRoom, MSG_DONTWAIT);
    if (got == 0) return Got::kEnd;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN ? Got::kSome : Got::kFailed;
    if (straight)
      have += size_t(got);
    else
      begin_ = 0, end_ = size_t(got);
  }
  return Got::kAll;
}

bool Inflow::end(const std::string& how) {
  why = how;
  return false;
}

bool Inflow::refuse_forgery() {
  ++box_.refusals().forged;
  forged = true;
  return end("what came on its connection was changed, repeated or left out on its way");
}

// False: the connection is over. `there`: all n bytes have come.
bool Inflow::arrived(const Fd& socket, char* to, size_t n, bool& there) {
  size_t& have = to == tag_ ? have_tag_ : have_;
  const Bytes::Got got = bytes_.fill(socket, to, n, have);
  there = got == Bytes::Got::kAll;
  if (got == Bytes::Got::kFailed) return end(text("the connection failed: ", std::strerror(errno)));
  if (got != Bytes::Got::kEnd) return true;
  if (stage_ == Stage::kHeader && have_ == 0) return end("");
  ++box_.refusals().truncated;
  return end("its connection ended in the middle of a message");
}

bool Inflow::take_header(const Fd& socket, bool& moved) {
  if (!arrived(socket, sealed_header_, kSealedHeader, moved)) return false;
  if (!moved) return true;
  if (!seal_.open(sealed_header_, sizeof(Header), sealed_header_ + sizeof(Header))) return refuse_forgery();
  std::memcpy(&header_, sealed_header_, sizeof header_);
  const int64_t n = length_of(header_);
  if (header_.magic != Header::kMagic || header_.version != Header::kVersion || header_.from != peer_ ||
      n < 0) {
    ++box_.refusals().messages;
    return end("it sent a header that contradicts itself; do all run the same version?");
  }
  length_ = size_t(n), have_ = 0, have_tag_ = 0;
  stage_ = Stage::kRoom;
  return true;
}

// What the mailbox refuses, or drops, or takes as a whole, is read into memory of its own. What it refuses
// and is so long that none of ours would send it as one piece is not read at all.
bool Inflow::prepare() {
  const bool data = header_.kind == Kind::kData && !box_.outdated(header_);
  into_ = data ? box_.landing(header_, skein::allocator(kCpu)) : Tensor();
  landing_ = bool(into_);
  if (data && !landing_ && int64_t(length_) > kPieceBytes) {
    const std::string refused = box_.put({header_, Tensor({0}, kU8)});
    return end(refused.empty() ? "it sent a message that cannot be taken" : refused);
  }
  if (!landing_) into_ = Tensor({int64_t(length_)}, kU8);
  stage_ = Stage::kPayload;
  return true;
}

bool Inflow::take_payload(const Fd& socket, bool& moved) {
  char* const to = static_cast<char*>(into_.raw());
  if (length_ > 0) {
    if (!arrived(socket, to, length_, moved)) return false;
    if (moved && !arrived(socket, tag_, kTagBytes, moved)) return false;
    if (!moved) return true;
    if (!seal_.open(to, length_, tag_)) return refuse_forgery();
  }
  moved = true;
  finish();
  into_ = {};
  have_ = 0;
  stage_ = Stage::kHeader;
  return true;
}

void Inflow::finish() {
  if (landing_) return box_.landed(header_, into_);
  if (box_.outdated(header_) && header_.kind == Kind::kData) return;
  Message m{header_, std::move(into_)};
  m.pieces = 1;
  goodbye = header_.kind == Kind::kGoodbye;
  refusal = box_.put(std::move(m));
}

// `moved`: the next step may find something to do.
bool Inflow::step(const Fd& socket, bool& moved) {
  switch (stage_) {
    case Stage::kHeader:
      return take_header(socket, moved);
    case Stage::kRoom:
      moved = header_.kind != Kind::kData || header_.piece > 0 || box_.outdated(header_) ||
              box_.room(peer_, header_.bytes);
      return !moved || prepare();
    case Stage::kPayload:
      return take_payload(socket, moved);
  }
  return true;
}

bool Inflow::read(const Fd& socket) {
  bool moved = true;
  for (int i = 0; moved && i < kMostSteps && refusal.empty() && !goodbye; ++i)
    if (!step(socket, moved)) return false;
  return true;
}

}  // namespace skein::comm
