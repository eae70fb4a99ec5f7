// Outflow: one buffer, which holds a large message or as many small ones as fit.
#include "comm/tcp/outflow.h"

#include <sys/socket.h>

#include <cerrno>

namespace skein::comm {
namespace {

constexpr size_t kTogether = 64 << 10;  // bytes of small messages that are written by one call
constexpr int kMostBuffers = 8;  // of one call of write(), so that one peer does not keep others waiting

size_t sealed_bytes(int64_t payload) {
  return kSealedHeader + (payload > 0 ? size_t(payload) + kTagBytes : 0);
}

}  // namespace

void Outflow::add(const Header& h, Tensor payload) {
  waiting_ += payload.bytes();
  queue_.push_back({h, std::move(payload)});
}

void Outflow::forget() {
  queue_.clear();
  waiting_ = 0, at_ = end_ = 0;
}

std::optional<int64_t> Outflow::round() const {
  if (at_ < end_) return round_;
  return queue_.empty() ? std::nullopt : round_of(queue_.front().header);
}

void Outflow::seal_some() {
  at_ = end_ = 0;
  round_ = round_of(queue_.front().header);
  while (!queue_.empty() && round_of(queue_.front().header) == round_) {
    const Queued& next = queue_.front();
    const int64_t n = next.payload.bytes();
    const size_t more = sealed_bytes(n);
    if (end_ > 0 && end_ + more > kTogether) return;
    if (end_ + more > sealed_.size()) sealed_.resize(end_ + more);
    char* const to = sealed_.data() + end_;
    seal_.seal(&next.header, sizeof(Header), to, to + sizeof(Header));
    if (n > 0) seal_.seal(next.payload.raw(), size_t(n), to + kSealedHeader, to + kSealedHeader + n);
    end_ += more;
    waiting_ -= n;
    queue_.pop_front();
  }
}

bool Outflow::write(const Fd& socket) {
  for (int sealed = 0;;) {
    if (at_ == end_) {
      if (queue_.empty() || sealed == kMostBuffers) return true;
      if (sealed++ > 0 && round_of(queue_.front().header) != round_) return true;
      seal_some();
    }
    const ssize_t n = ::send(socket.get(), sealed_.data() + at_, end_ - at_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    at_ += size_t(n), written_ += n;
  }
}

}  // namespace skein::comm
