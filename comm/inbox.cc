// The inbox's thread: receive a batch, judge it, queue what is new, acknowledge.
#include "comm/inbox.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace skein::comm {
namespace {

constexpr size_t kBatch = 256;
constexpr size_t kRoom = 64;                              // more than a datagram, so that a longer one shows
constexpr int kKernelBuffer = 4 << 20;                    // the kernel grants what it allows
constexpr timeval kNap{.tv_sec = 0, .tv_usec = 200'000};  // between looks at stop_, should a wake-up be lost

}  // namespace

struct Inbox::Batch {
  Batch() {
    for (size_t i = 0; i < kBatch; ++i) {
      in_parts[i] = {room[i], kRoom};
      in[i].msg_hdr.msg_iov = &in_parts[i];
      in[i].msg_hdr.msg_iovlen = 1;
      in[i].msg_hdr.msg_name = &from[i];
      out[i].msg_hdr.msg_iovlen = 1;
    }
  }
  // The kernel writes the length of the address over its room.
  void ready() {
    for (size_t i = 0; i < kBatch; ++i) in[i].msg_hdr.msg_namelen = sizeof from[i];
  }
  void answer(size_t i) {
    out_parts[answers] = {&datagram[i], sizeof(Datagram)};
    out[answers].msg_hdr.msg_iov = &out_parts[answers];
    out[answers].msg_hdr.msg_name = &from[i];
    out[answers].msg_hdr.msg_namelen = in[i].msg_hdr.msg_namelen;
    ++answers;
  }
  char room[kBatch][kRoom] = {};
  sockaddr_in from[kBatch] = {};
  iovec in_parts[kBatch] = {}, out_parts[kBatch] = {};
  mmsghdr in[kBatch] = {}, out[kBatch] = {};
  Datagram datagram[kBatch];
  bool genuine[kBatch] = {};
  size_t answers = 0;
};

Inbox::Inbox(InboxOptions o)
    : o_(std::move(o)), salt_(random_bytes(16)), seal_(o_.key, salt_), socket_(udp_socket()) {
  CHECK(o_.workers >= 1, o_.workers);
  last_.assign(size_t(o_.workers), -1);
  waits_.assign(size_t(o_.workers), false);
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kKernelBuffer, sizeof kKernelBuffer);
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kNap, sizeof kNap);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(o_.port));
  socklen_t n = sizeof a;
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 ||
      getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&a), &n) != 0)
    fail_system(text("listening at UDP port ", o_.port));
  port_ = ntohs(a.sin_port);
  thread_ = std::thread([this] { receive(); });
}

Inbox::~Inbox() {
  stop_ = true;
  sockaddr_in me{};
  me.sin_family = AF_INET;
  me.sin_port = htons(uint16_t(port_));
  me.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sendto(socket_.get(), "", 0, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&me), sizeof me);
  thread_.join();
}

Invitation Inbox::invitation() const { return {salt_, port_, own_addresses()}; }

void Inbox::receive() {
  const auto batch = std::make_unique<Batch>();
  Batch& b = *batch;
  while (!stop_) {
    b.ready();
    const int got = recvmmsg(socket_.get(), b.in, kBatch, MSG_WAITFORONE, nullptr);
    if (got <= 0 || stop_) continue;
    InboxCounts bad;
    for (size_t i = 0; i < size_t(got); ++i) judge(b, i, bad);
    b.answers = 0;
    bool more = false;
    {
      const std::lock_guard lock(mutex_);
      counts_.length += bad.length, counts_.stranger += bad.stranger, counts_.version += bad.version;
      counts_.job += bad.job, counts_.forged += bad.forged, counts_.worker += bad.worker;
      const bool empty = queue_.empty();
      for (size_t i = 0; i < size_t(got); ++i)
        if (b.genuine[i] && enter(b.datagram[i])) b.answer(i);
      more = empty && !queue_.empty();
    }
    if (more) changed_.notify_one();
    for (size_t i = 0; i < b.answers; ++i) {
      Datagram& d = *static_cast<Datagram*>(b.out[i].msg_hdr.msg_iov->iov_base);
      d.kind |= kAcknowledged;
      seal_.sign(d);
    }
    // What does not go out now is asked for again.
    if (b.answers > 0) sendmmsg(socket_.get(), b.out, unsigned(b.answers), MSG_DONTWAIT);
  }
}

void Inbox::judge(Batch& b, size_t i, InboxCounts& bad) const {
  Datagram& d = b.datagram[i];
  b.genuine[i] = false;
  if (b.in[i].msg_len != sizeof d || (b.in[i].msg_hdr.msg_flags & MSG_TRUNC)) return void(++bad.length);
  std::memcpy(&d, b.room[i], sizeof d);
  if (d.magic != Datagram::kMagic) return void(++bad.stranger);
  if (d.version != Datagram::kVersion) return void(++bad.version);
  if (d.job != seal_.job()) return void(++bad.job);
  if (!seal_.genuine(d)) return void(++bad.forged);
  if (d.worker < 0 || d.worker >= o_.workers || d.kind >= kAcknowledged) return void(++bad.worker);
  b.genuine[i] = true;
}

bool Inbox::enter(const Datagram& d) {
  int64_t& last = last_[size_t(d.worker)];
  if (d.sequence == last) {
    ++counts_.duplicates;
    return true;
  }
  if (d.sequence < last) {
    ++counts_.replayed;
    return false;
  }
  last = d.sequence;
  ++counts_.accepted;
  const Request r{d.worker, d.kind, d.argument, d.sequence};
  if (waits_[size_t(d.worker)]) {
    ++counts_.superseded;
    *std::find_if(queue_.begin(), queue_.end(), [&](const Request& q) { return q.worker == d.worker; }) = r;
  } else {
    queue_.push_back(r);
    waits_[size_t(d.worker)] = true;
  }
  return true;
}

std::optional<Request> Inbox::next(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return !queue_.empty() || woken_; });
  woken_ = false;
  if (queue_.empty()) return {};
  const Request r = queue_.front();
  queue_.pop_front();
  waits_[size_t(r.worker)] = false;
  return r;
}

void Inbox::forget(int worker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Request& r) { return r.worker == worker; });
  waits_.at(size_t(worker)) = false;
}

void Inbox::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

InboxCounts Inbox::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace skein::comm
