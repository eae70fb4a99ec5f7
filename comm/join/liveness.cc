// Liveness: a thread writes heartbeats; any thread that waits reads them.
#include "comm/join/liveness.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace skein::comm {
namespace {
constexpr char kBeat = 'H', kBye = 'B', kConfirmed = 'C';
}

Liveness::Liveness(Mailbox& box, double silence) : box_(box), silence_(silence) {}

Liveness::~Liveness() {
  {
    std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (Peer& p : peers_)
    if (p.open) (void)::send(p.socket.get(), &kBye, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Liveness::watch(Rank r, Fd connection) {
  set_nonblocking(connection);
  peers_.push_back({r, std::move(connection), Clock::now()});
}

void Liveness::start() {
  if (!peers_.empty()) thread_ = std::thread([this] { beat(); });
}

void Liveness::beat() {
  std::unique_lock lock(stop_mutex_);
  while (!stopping_.wait_for(lock, std::chrono::duration<double>(silence_ / 10), [this] { return stop_; }))
    for (const Peer& p : peers_) (void)::send(p.socket.get(), &kBeat, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Liveness::read(Peer& p) {
  char bytes[256];
  for (;;) {
    const ssize_t n = recv(p.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) {
      p.heard = Clock::now();
      for (ssize_t i = 0; i < n; ++i) {
        if (bytes[i] == kBye) p.bye = true;
        if (bytes[i] == kConfirmed) p.confirmed = true;
      }
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    p.open = false;
    // Its own kernel closed the connection. Any other error (no route, time-out) may be the link's.
    const bool ended = n == 0 || errno == ECONNRESET;
    const std::string error = ended ? "" : std::strerror(errno);
    // Its last messages may arrive later than the hang-up; its goodbye arrives after them.
    if (p.bye) return;
    return box_.lose(p.rank, ended ? "its process has ended" : "the link failed: " + error, ended);
  }
}

void Liveness::check(bool now) {
  const auto time = Clock::now();
  if (!now && time.time_since_epoch().count() < next_look_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  next_look_ = (time + std::chrono::milliseconds(1)).time_since_epoch().count();
  // A rank that has not looked for long (it computed, or was stopped) cannot tell silence from
  // its own absence.
  const bool absent = time - looked_ > std::chrono::duration<double>(silence_ / 4);
  looked_ = time;
  for (Peer& p : peers_) {
    if (p.bye && time - p.heard > std::chrono::seconds(2)) box_.leave(p.rank);
    if (!p.open) continue;
    if (absent) p.heard = time;
    read(p);
    if (p.open && !p.bye && time - p.heard > std::chrono::duration<double>(silence_)) {
      p.open = false;
      box_.lose(p.rank, text("not heard of for ", silence_, " s (stopped, or the link is cut)"));
    }
  }
}

void Liveness::confirm_goodbye(Rank r) {
  for (const Peer& p : peers_)
    if (p.rank == r) (void)::send(p.socket.get(), &kConfirmed, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Liveness::goodbye_confirmed(Rank r) {
  const std::lock_guard lock(mutex_);
  for (const Peer& p : peers_)
    if (p.rank == r) return p.confirmed;
  return true;
}

}  // namespace skein::comm
