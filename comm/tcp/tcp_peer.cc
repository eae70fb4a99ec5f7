// TCP peer: sending waits for room, failures wait for the verdict of the heartbeats.
#include "comm/tcp/tcp_peer.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "comm/join/congestion.h"

namespace skein::comm {
namespace {

// How long the connection of the heartbeats may contradict the end of this one.
constexpr auto kVerdict = std::chrono::seconds(2);

// Of a message of a round the kernel takes no more than what it will have sent after so many seconds: enough
// to keep the cable busy until the next turn, and little, because it gives way to no older round.
constexpr double kAhead = 0.005;
constexpr double kLeastAhead = 64 << 10, kMostAhead = 4 << 20;  // bytes

void keep_little_ahead(const Fd& socket) {
  tcp_info known{};
  socklen_t length = sizeof known;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &known, &length)) return;
  const int ahead = int(std::clamp(kAhead * double(known.tcpi_delivery_rate), kLeastAhead, kMostAhead));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &ahead, sizeof ahead);
}

}  // namespace

TcpPeer::TcpPeer(TcpEndpoints& all, Rank peer, Line line)
    : all_(all),
      peer_(peer),
      socket_(std::move(line.socket)),
      out_(std::move(line.out)),
      in_(peer, std::move(line.in), all.box_) {
  set_nonblocking(socket_);
  suit_path(socket_);
}

void TcpPeer::send(const Header& h, Tensor payload, Clock::time_point deadline) {
  std::unique_lock lock(all_.mutex_);
  auto looked = Clock::now();
  const auto too_much = [&] {
    return h.kind == Kind::kData && out_.waiting() > 0 && out_.waiting() + payload.bytes() > all_.in_flight_;
  };
  while (too_much() && !all_.box_.epoch_ends()) {  // then the peer may take nothing more
    deadline += absence(looked);
    all_.box_.membership().require(peer_);
    if (Clock::now() > deadline)
      throw Timeout(peer_, text("rank ", peer_, " has not taken what we sent it (now tag ", h.tag, ", step ",
                                h.step, "): ", out_.waiting(), " bytes are on their way"));
    all_.turn();
    lock.unlock();
    all_.live_.check();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  post(h, std::move(payload));
  const bool rest = !out_.idle();
  lock.unlock();
  if (rest) all_.stir();  // nobody looks yet whether there is room for it
}

// After the end nothing is sent: the next wait is about to throw why.
void TcpPeer::post(const Header& h, Tensor payload) {
  CHECK(payload.device().is_host(), "TCP moves the host's memory only", payload.device());
  if (over_) return;
  out_.add(h, std::move(payload));
  if (round_of(h)) all_.give_way();
  go_out();
}

// What could not move is not blamed for it.
Clock::time_point TcpPeer::Motion::look(std::optional<int64_t> now_front, int64_t now_there, bool could,
                                        Clock::time_point now) {
  const bool moved = std::exchange(bytes, now_there) != now_there;
  if (std::exchange(round, now_front) != now_front || moved || !could) last = now;
  return last;
}

// It moves as long as the kernel sends it.
Passage TcpPeer::leaving(Clock::time_point now) {
  Passage p{out_.round()};
  if (over_ || !p.round) return {};
  if (leaving_.round != p.round) keep_little_ahead(socket_);
  int queued = 0;
  ioctl(socket_.get(), SIOCOUTQ, &queued);
  p.moved = leaving_.look(p.round, out_.written() - queued, may_leave_, now);
  p.stopped = all_.live_.asked_to_wait(peer_);
  return p;
}

Passage TcpPeer::coming(Clock::time_point now) {
  Passage p{in_.round()};
  if (over_ || !p.round) return {};
  p.moved = coming_.look(p.round, in_.moved(), may_come_, now);
  return p;
}

void TcpPeer::may_come(bool may) {
  if (std::exchange(may_come_, may) != may) all_.live_.ask_to_wait(peer_, !may);
}

void TcpPeer::go_out() {
  if (!over_ && may_leave_ && !out_.write(socket_))
    end(text("the connection failed: ", std::strerror(errno)));
}

void TcpPeer::come_in() {
  if (over_) return;
  if (!in_.read(socket_)) {
    end(in_.why);
    if (in_.forged) all_.box_.lose(peer_, in_.why);
    return;
  }
  if (in_.goodbye) all_.live_.confirm_goodbye(peer_);
  in_.goodbye = false;
  if (in_.refusal.empty()) return;
  const Message m = all_.box_.refusal(std::exchange(in_.refusal, ""));
  post(m, m.payload);
}

void TcpPeer::end(const std::string& why) {
  over_ = true;
  over_since_ = Clock::now();
  why_ = why;
  out_.forget();
  socket_ = {};
}

// A connection also ends when its peer does; its goodbye, or the end of its heartbeats, tells which it was.
void TcpPeer::report_failure() {
  if (over_ && all_.box_.membership().alive(peer_) && Clock::now() - over_since_ > kVerdict)
    all_.box_.lose(peer_, why_.empty() ? "it has closed its connection" : why_, false,
                   seconds_since(over_since_));
}

}  // namespace skein::comm
