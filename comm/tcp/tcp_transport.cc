// TCP transport: progress is one poll over all connections; a nap is the same with patience, and so is what
// the thread does, but it gathers.
#include "comm/tcp/tcp_transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "comm/tcp/tcp_peer.h"

namespace skein::comm {
namespace {

constexpr auto kLongestSleep = std::chrono::milliseconds(5);
constexpr auto kGlance =
    std::chrono::microseconds(100);  // between looks for room in the mailbox, which wakes no thread
constexpr auto kPolling = std::chrono::microseconds(60);  // before sleeping
// From the first byte that the thread could move to when it moves all that there is by then: a fraction of
// what the kernel's buffers hold at 10 Gbit/s, and 500 times a second are little work.
constexpr auto kGathering = std::chrono::milliseconds(2);

void ring(const Fd& bell) {
  const uint64_t one = 1;
  (void)!write(bell.get(), &one, sizeof one);
}
void silence(const Fd& bell) {
  uint64_t rung = 0;
  (void)!read(bell.get(), &rung, sizeof rung);
}

}  // namespace

// What poll() is to look at, with the peer of each; none: the bell, or heartbeats, which ask to wait.
struct TcpEndpoints::Waits {
  std::vector<pollfd> fds;
  std::vector<TcpPeer*> peers;
  Waits(TcpEndpoints& all, const Fd& bell) {
    fds.push_back({bell.get(), POLLIN, 0});
    peers.push_back(nullptr);
    for (const auto& [r, p] : all.peers_) {
      if (p->over()) continue;
      const int in = p->in().stalled() ? 0 : POLLIN, out = p->wants_out() ? POLLOUT : 0;
      fds.push_back({p->socket().get(), short(in | out), 0});
      peers.push_back(p.get());
      if (!p->out().round() || !all.box_.membership().alive(r)) continue;
      fds.push_back({all.live_.socket(r).get(), POLLIN, 0});
      peers.push_back(nullptr);
    }
  }
};

TcpEndpoints::TcpEndpoints(std::map<Rank, Line> lines, Mailbox& box, Liveness& live, int64_t in_flight)
    : box_(box),
      live_(live),
      in_flight_(in_flight),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_ || !thread_bell_) fail_system("eventfd");
  for (auto& [r, line] : lines) peers_[r] = std::make_unique<TcpPeer>(*this, r, std::move(line));
}

void TcpEndpoints::start() {
  thread_ = std::thread([this] { keep_busy(); });
}

TcpEndpoints::~TcpEndpoints() {
  stop_ = true;
  ring(thread_bell_);
  if (thread_.joinable()) thread_.join();
  flush();
}

Endpoint& TcpEndpoints::to(Rank r) {
  CHECK(reaches(r), "rank", r, "is not reached by TCP");
  return *peers_.at(r);
}

// What has moved since the last call moves: a worker that computes in between makes no pause by that.
void TcpEndpoints::give_way() {
  const auto now = Clock::now();
  std::vector<TcpPeer*> peers;
  std::vector<Passage> leaving, coming;
  for (const auto& [r, p] : peers_) {
    if (!p->in().round() && !p->out().round() && !p->waits()) continue;
    peers.push_back(p.get());
    leaving.push_back(p->leaving(now));
    coming.push_back(p->coming(now));
  }
  const std::vector<bool> out = may_move(leaving, now), in = may_move(coming, now);
  for (size_t i = 0; i < peers.size(); ++i) {
    peers[i]->may_leave(out[i] && !leaving[i].stopped);
    peers[i]->may_come(in[i]);
  }
}

void TcpEndpoints::turn() {
  give_way();
  Waits w(*this, bell_);
  poll(w.fds.data(), w.fds.size(), 0);
  for (size_t i = 1; i < w.fds.size(); ++i) {
    if (!w.peers[i] && w.fds[i].revents) live_.check(true);
    if (!w.peers[i]) continue;
    TcpPeer& p = *w.peers[i];
    if (w.fds[i].revents & POLLOUT) p.go_out();
    if ((w.fds[i].revents & ~POLLOUT) || p.in().pending()) p.come_in();
  }
  for (const auto& [r, p] : peers_) p->report_failure();
}

// Whether something may move that no socket announces.
bool TcpEndpoints::needs_turns() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& of) {
    const TcpPeer& p = *of.second;
    return !p.over() && (p.in().pending() || p.waits());
  });
}

// While a rank waits for messages its nap moves them, at once, and the thread stays away.
void TcpEndpoints::keep_busy() try {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    Waits w(*this, thread_bell_);
    const bool again = needs_turns(), naps = sleepers_ > 0;
    lock.unlock();
    poll(w.fds.data(), naps ? 1 : w.fds.size(), naps || again ? int(kLongestSleep.count()) : -1);
    silence(thread_bell_);
    if (!stop_) std::this_thread::sleep_for(kGathering);
    if (sleepers_ == 0) progress();
    lock.lock();
  }
} catch (const std::exception& e) {  // nobody else would hear of it
  box_.poison(text("messages by TCP: ", e.what()));
}

void TcpEndpoints::progress() {
  const int64_t before = box_.arrivals();
  {
    const std::lock_guard lock(mutex_);
    turn();
    if (sleepers_ == 0 && needs_turns()) ring(thread_bell_);
  }
  if (sleepers_ > 0 && box_.arrivals() != before) wake();
}

void TcpEndpoints::wake() { ring(bell_); }
void TcpEndpoints::stir() { ring(sleepers_ > 0 ? bell_ : thread_bell_); }

void TcpEndpoints::nap(const Key& k, Clock::time_point until) {
  const int64_t before = box_.arrivals();
  const auto began = Clock::now();
  for (int i = 0; Clock::now() - began < kPolling; ++i) {
    progress();
    if (box_.arrivals() != before || box_.has(k)) return;
    if (i % 4 == 3) std::this_thread::yield();
  }
  ++sleepers_;
  std::unique_lock lock(mutex_);
  Waits w(*this, bell_);
  const bool pending = std::any_of(peers_.begin(), peers_.end(), [](const auto& p) {
    return !p.second->over() && p.second->in().pending();
  });
  lock.unlock();
  const auto longest =
      std::min<Clock::duration>(until - Clock::now(), pending ? Clock::duration(kGlance) : kLongestSleep);
  const auto left = std::max<int64_t>(0, std::chrono::nanoseconds(longest).count());
  const timespec time{0, long(left)};
  if (box_.arrivals() == before) ppoll(w.fds.data(), w.fds.size(), &time, nullptr);
  --sleepers_;
  silence(bell_);
}

void TcpEndpoints::progress_until(Clock::duration at_most, const std::function<bool()>& done) {
  const auto deadline = Clock::now() + at_most;
  const auto finished = [&] {
    const std::lock_guard lock(mutex_);
    return done();
  };
  while (!finished() && Clock::now() < deadline) {
    progress();
    live_.check();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void TcpEndpoints::flush() {
  progress_until(std::chrono::seconds(60), [this] {
    return std::all_of(peers_.begin(), peers_.end(), [this](const auto& p) {
      return p.second->over() || p.second->out().idle() || !box_.membership().alive(p.first);
    });
  });
}

void TcpEndpoints::await_confirmation() {
  progress_until(std::chrono::seconds(5), [this] {
    return std::all_of(peers_.begin(), peers_.end(), [this](const auto& p) {
      return p.second->over() || !box_.membership().alive(p.first) || live_.goodbye_confirmed(p.first);
    });
  });
}

std::string TcpEndpoints::describe(Rank r) const {
  const Cipher& c = peers_.at(r)->out().cipher();
  return text("tcp, ", c.hides() ? "sealed" : "not encrypted, authenticated", " with ", name_of(c.kind()));
}

}  // namespace skein::comm
