// Liveness: a thread writes heartbeats; any thread that waits reads them.
#include "comm/join/liveness.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace skein::comm {
namespace {
constexpr char kBeat = 'H', kBye = 'B', kConfirmed = 'C', kWait = 'W', kGoOn = 'G';
constexpr size_t kMostUnsent = 1024;  // bytes; a peer that has not taken so many needs no more heartbeats
}  // namespace

Liveness::Liveness(Mailbox& box, SilenceBounds silence) : box_(box), silence_(silence) {}

Liveness::~Liveness() {
  {
    std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (Peer& p : peers_)
    if (p.open) say(p, kBye);
}

void Liveness::watch(Rank r, Fd connection) {
  set_nonblocking(connection);
  peers_.emplace_back(r, std::move(connection), Silence(silence_, Clock::now()));
}
void Liveness::watch(Rank r, Line line) {
  watch(r, std::move(line.socket));
  peers_.back().seals = Session{std::move(line.out), std::move(line.in)};
}

void Liveness::start() {
  if (!peers_.empty()) thread_ = std::thread([this] { beat(); });
}

void Liveness::beat() {
  std::unique_lock lock(stop_mutex_);
  while (
      !stopping_.wait_for(lock, std::chrono::duration<double>(silence_.least / 10), [this] { return stop_; }))
    for (Peer& p : peers_) say(p, kBeat);
}

// A word is one byte, followed by its tag where words are sealed.
void Liveness::say(Peer& p, char word) {
  const std::lock_guard lock(saying_mutex_);
  if (p.unsent.size() < kMostUnsent) {
    char tag[kTagBytes];
    if (p.seals) p.seals->out.seal(&word, 1, &word, tag);
    p.unsent.append(1, word).append(tag, p.seals ? kTagBytes : 0);
  }
  const ssize_t n = ::send(p.socket.get(), p.unsent.data(), p.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) p.unsent.erase(0, size_t(n));
}

bool Liveness::hear(Peer& p, const char* bytes, size_t n) {
  p.unread.append(bytes, n);
  const size_t length = 1 + (p.seals ? kTagBytes : 0);
  size_t at = 0;
  for (; p.unread.size() - at >= length; at += length) {
    char* const word = &p.unread[at];
    if (p.seals && !p.seals->in.open(word, 1, word + 1)) return false;
    if (*word == kBye) p.bye = true;
    if (*word == kConfirmed) p.confirmed = true;
    if (*word == kWait || *word == kGoOn) p.waits = *word == kWait;
  }
  p.unread.erase(0, at);
  return true;
}

void Liveness::read(Peer& p) {
  char bytes[256];
  for (;;) {
    const double silent = seconds_since(p.silence.last());
    const ssize_t n = recv(p.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) {
      p.silence.heard(Clock::now());
      if (hear(p, bytes, size_t(n))) continue;
      ++box_.refusals().forged;
      p.open = false;
      return box_.lose(p.rank, "its heartbeats were tampered with on their way");
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    p.open = false;
    // Its own kernel closed the connection. Any other error (no route, time-out) may be the link's.
    const bool ended = n == 0 || errno == ECONNRESET;
    const std::string error = ended ? "" : std::strerror(errno);
    // Its last messages may arrive later than the hang-up; its goodbye arrives after them.
    if (p.bye) return;
    return box_.lose(p.rank, ended ? "its process has ended" : "the link failed: " + error, ended, silent);
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
  const bool absent = time - looked_ > std::chrono::duration<double>(silence_.least / 4);
  looked_ = time;
  for (Peer& p : peers_) {
    if (p.bye && time - p.silence.last() > std::chrono::seconds(2)) box_.leave(p.rank);
    if (!p.open) continue;
    if (absent) p.silence.excuse(time);
    read(p);
    if (p.open && !p.bye && p.silence.is_over(time)) {
      p.open = false;
      const double limit = std::round(10 * p.silence.limit(time)) / 10;
      box_.lose(p.rank, text("not heard of for ", limit, " s (stopped, or the link is cut)"), false,
                seconds_since(p.silence.last()));
    }
  }
}

const Liveness::Peer& Liveness::peer(Rank r) const {
  const auto at = std::find_if(peers_.begin(), peers_.end(), [r](const Peer& p) { return p.rank == r; });
  CHECK(at != peers_.end(), "no heartbeats with rank", r);
  return *at;
}

const Fd& Liveness::socket(Rank r) const { return peer(r).socket; }

void Liveness::ask_to_wait(Rank r, bool wait) {
  for (Peer& p : peers_)
    if (p.rank == r) say(p, wait ? kWait : kGoOn);
}

void Liveness::confirm_goodbye(Rank r) {
  for (Peer& p : peers_)
    if (p.rank == r) say(p, kConfirmed);
}

bool Liveness::goodbye_confirmed(Rank r) {
  const std::lock_guard lock(mutex_);
  for (const Peer& p : peers_)
    if (p.rank == r) return p.confirmed;
  return true;
}

}  // namespace skein::comm
