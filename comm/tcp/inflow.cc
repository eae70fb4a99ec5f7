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
  size_t& have = to == now_.tag ? now_.have_tag : now_.have;
  const size_t had = have;
  const Bytes::Got got = bytes_.fill(socket, to, n, have);
  moved_ += int64_t(have - had);
  there = got == Bytes::Got::kAll;
  if (got == Bytes::Got::kFailed) return end(text("the connection failed: ", std::strerror(errno)));
  if (got != Bytes::Got::kEnd) return true;
  if (stage_ == Stage::kHeader && now_.have == 0) return end("");
  ++box_.refusals().truncated;
  return end("its connection ended in the middle of a message");
}

bool Inflow::take_header(const Fd& socket, bool& moved) {
  if (!arrived(socket, now_.sealed_header, kSealedHeader, moved)) return false;
  if (!moved) return true;
  if (!seal_.open(now_.sealed_header, sizeof(Header), now_.sealed_header + sizeof(Header)))
    return refuse_forgery();
  std::memcpy(&now_.header, now_.sealed_header, sizeof now_.header);
  const int64_t n = length_of(now_.header);
  if (now_.header.magic != Header::kMagic || now_.header.version != Header::kVersion ||
      now_.header.from != peer_ || n < 0) {
    ++box_.refusals().messages;
    return end("it sent a header that contradicts itself; do all run the same version?");
  }
  now_.length = size_t(n), now_.have = 0, now_.have_tag = 0;
  round_ = round_of(now_.header);
  stage_ = Stage::kRoom;
  return true;
}

// What the mailbox refuses or takes as a whole is read into memory of its own. What it refuses
// and is so long that none of ours would send it as one piece is not read at all.
bool Inflow::prepare() {
  const bool data = now_.header.kind == Kind::kData;
  now_.into = data ? box_.landing(now_.header, skein::allocator(kCpu)) : Tensor();
  now_.landing = bool(now_.into);
  if (data && !now_.landing && int64_t(now_.length) > kPieceBytes) {
    const std::string refused = box_.put({now_.header, Tensor({0}, kU8)});
    return end(refused.empty() ? "it sent a message that cannot be taken" : refused);
  }
  if (!now_.landing) now_.into = Tensor({int64_t(now_.length)}, kU8);
  stage_ = Stage::kPayload;
  return true;
}

bool Inflow::take_payload(const Fd& socket, bool& moved) {
  char* const to = static_cast<char*>(now_.into.raw());
  if (now_.length > 0) {
    if (!arrived(socket, to, now_.length, moved)) return false;
    if (moved && !arrived(socket, now_.tag, kTagBytes, moved)) return false;
    if (!moved) return true;
    if (!seal_.open(to, now_.length, now_.tag)) return refuse_forgery();
  }
  moved = true;
  finish();
  now_.into = {};
  now_.have = 0;
  if (now_.header.piece + 1 == now_.header.pieces) round_.reset();
  stage_ = Stage::kHeader;
  return true;
}

void Inflow::finish() {
  if (now_.landing) return box_.landed(now_.header, now_.into);
  Message m{now_.header, std::move(now_.into)};
  m.pieces = 1;
  goodbye = now_.header.kind == Kind::kGoodbye;
  refusal = box_.put(std::move(m));
}

// `moved`: the next step may find something to do.
bool Inflow::step(const Fd& socket, bool& moved) {
  switch (stage_) {
    case Stage::kHeader:
      return take_header(socket, moved);
    case Stage::kRoom:
      moved = now_.header.kind != Kind::kData || now_.header.piece > 0 || box_.room(peer_, now_.header.bytes);
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
