// recvmmsg and sendmmsg over messages that may hold several datagrams each.
#include "comm/inbox/datagrams.h"

#include <netinet/udp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace skein::comm {
namespace {

constexpr size_t kMessages = 64;    // per system call
constexpr size_t kTogether = 64;    // datagrams in one message; all kernels allow as many
constexpr size_t kOutgoing = 1024;  // datagrams, after which add() flushes by itself
constexpr size_t kControl = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t));

bool same(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
}

// The bytes of each datagram in a message; the whole length if it holds only one.
size_t segment(msghdr& m, size_t bytes) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int n = 0;
      std::memcpy(&n, CMSG_DATA(c), sizeof n);
      if (n > 0) return size_t(n);
    }
  return bytes;
}

}  // namespace

struct Datagrams::Buffers {
  explicit Buffers(size_t bytes)
      : room(kTogether * (bytes + 1)), in_bytes(kMessages * room), out_bytes(kOutgoing * bytes) {
    for (size_t i = 0; i < kMessages; ++i) in_part[i] = {&in_bytes[i * room], room};
    arrived.reserve(kMessages * kTogether);
    to.reserve(kOutgoing);
  }
  const size_t room;  // of a message; one byte more per datagram reveals longer ones
  std::vector<uint8_t> in_bytes, out_bytes;
  std::array<mmsghdr, kMessages> in{}, out{};
  std::array<iovec, kMessages> in_part{}, out_part{};
  std::array<sockaddr_in, kMessages> from{};
  alignas(cmsghdr) char in_control[kMessages][kControl] = {};
  alignas(cmsghdr) char out_control[kMessages][CMSG_SPACE(sizeof(uint16_t))] = {};
  std::vector<Arrived> arrived;
  std::vector<sockaddr_in> to;  // for each datagram that waits to be sent
};

Datagrams::Datagrams(int socket, size_t bytes)
    : socket_(socket), bytes_(bytes), b_(std::make_unique<Buffers>(bytes)) {
  const int on = 1, off = 0;
  setsockopt(socket_, SOL_UDP, UDP_GRO, &on, sizeof on);
  together_ = setsockopt(socket_, SOL_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
}

Datagrams::~Datagrams() = default;

std::span<const Datagrams::Arrived> Datagrams::receive(bool wait) {
  for (size_t i = 0; i < kMessages; ++i) {
    msghdr& m = b_->in[i].msg_hdr;  // the kernel overwrites all of it
    m = {};
    m.msg_iov = &b_->in_part[i];
    m.msg_iovlen = 1;
    m.msg_name = &b_->from[i];
    m.msg_namelen = sizeof b_->from[i];
    m.msg_control = b_->in_control[i];
    m.msg_controllen = kControl;
  }
  b_->arrived.clear();
  // MSG_TRUNC returns the length that was sent, even if there was less room.
  const int flags = MSG_TRUNC | (wait ? MSG_WAITFORONE : MSG_DONTWAIT);
  const int got = recvmmsg(socket_, b_->in.data(), kMessages, flags, nullptr);
  for (int i = 0; i < got; ++i) take_apart(size_t(i));
  return b_->arrived;
}

void Datagrams::take_apart(size_t message) {
  msghdr& m = b_->in[message].msg_hdr;
  const size_t length = b_->in[message].msg_len;
  if (m.msg_namelen != sizeof(sockaddr_in)) return;
  const size_t each = segment(m, length);
  const uint8_t* at =
      b_->in_part[message].iov_base ? static_cast<uint8_t*>(b_->in_part[message].iov_base) : nullptr;
  size_t offset = 0;
  do {  // an empty datagram counts, too
    const size_t n = std::min(each, length - offset);
    const bool there = offset + n <= b_->room;
    b_->arrived.push_back({there ? at + offset : nullptr, n, &b_->from[message]});
    offset += n;
  } while (offset < length);
}

void Datagrams::add(const void* datagram, const sockaddr_in& to) {
  if (b_->to.size() == kOutgoing) flush();
  std::memcpy(&b_->out_bytes[b_->to.size() * bytes_], datagram, bytes_);
  b_->to.push_back(to);
}

void Datagrams::flush() {
  const size_t all = b_->to.size();
  size_t messages = 0;
  for (size_t i = 0; i < all;) {
    size_t n = 1;
    while (together_ && n < kTogether && i + n < all && same(b_->to[i], b_->to[i + n])) ++n;
    b_->out_part[messages] = {&b_->out_bytes[i * bytes_], n * bytes_};
    msghdr& m = b_->out[messages].msg_hdr;
    m = {};
    m.msg_iov = &b_->out_part[messages];
    m.msg_iovlen = 1;
    m.msg_name = &b_->to[i];
    m.msg_namelen = sizeof b_->to[i];
    if (n > 1) {
      m.msg_control = b_->out_control[messages];
      m.msg_controllen = sizeof b_->out_control[messages];
      cmsghdr* c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_UDP;
      c->cmsg_type = UDP_SEGMENT;
      c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const auto size = uint16_t(bytes_);
      std::memcpy(CMSG_DATA(c), &size, sizeof size);
    }
    i += n;
    if (++messages == kMessages || i == all) {
      send(messages);
      messages = 0;
    }
  }
  b_->to.clear();
}

// An interface that cannot cut pieces (EIO: it computes no checksums) gets one datagram per message from then
// on. The datagrams of this call are lost, as datagrams may be.
void Datagrams::send(size_t messages) {
  for (size_t done = 0; done < messages;) {
    const int n = sendmmsg(socket_, &b_->out[done], unsigned(messages - done), MSG_DONTWAIT);
    if (n <= 0 && (errno == EIO || errno == EINVAL)) together_ = false;
    if (n <= 0 && errno == EAGAIN) return;
    done += n > 0 ? size_t(n) : 1;  // a refused one does not delay the others
  }
}

}  // namespace skein::comm
