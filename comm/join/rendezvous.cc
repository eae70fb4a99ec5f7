// Rank 0's table of a job: it admits callers that know the key, then gathers strings and hands them out.
#include "comm/join/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/join/greeting.h"

namespace skein::comm {
namespace {

constexpr uint64_t kLongest = uint64_t(1) << 30;
constexpr uint64_t kTrouble = ~uint64_t(0);  // instead of a length: an error message follows

bool write_string(const Fd& s, const std::string& v, Clock::time_point until) {
  return write_all(s, bytes_of(uint64_t(v.size())) + v, until);
}
bool write_trouble(const Fd& s, const std::string& v) {
  return write_all(s, bytes_of(kTrouble) + bytes_of(uint64_t(v.size())) + v, after(1));
}
// False on hang-up, deadline or damage. Throws Timeout with what the other end reports.
bool read_string(const Fd& s, std::string& v, Clock::time_point until) {
  const auto length = [&](uint64_t& n) {
    std::string raw;
    if (!read_all(s, raw, sizeof n, until)) return false;
    std::memcpy(&n, raw.data(), sizeof n);
    return true;
  };
  uint64_t n = 0;
  if (!length(n)) return false;
  const bool trouble = n == kTrouble;
  if (trouble && !length(n)) return false;
  if (n > kLongest || !read_all(s, v, size_t(n), until)) return false;
  if (trouble) throw Timeout(-1, v);
  return true;
}

std::string list(const std::vector<Rank>& ranks) {
  std::string s = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) s += (i ? ", " : "") + std::to_string(ranks[i]);
  return s;
}

// A connection that has not yet said which rank it is.
struct Caller {
  Fd socket;
  std::string challenge, said;
  Clock::time_point until;
};

// Receives without waiting. False: it hung up.
bool read_some(Caller& c) {
  char buffer[kHelloBytes];
  const ssize_t n = recv(c.socket.get(), buffer, kHelloBytes - c.said.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (n > 0) c.said.append(buffer, size_t(n));
  return true;
}

}  // namespace

Fd listen_at(int& port, bool only_this_host) {
  Fd s(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!s) fail_system("making a TCP socket");
  const int one = 1;
  setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(uint16_t(port));
  a.sin_addr.s_addr = htonl(only_this_host ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t n = sizeof a;
  if (bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(s.get(), 1024) != 0) {
    if (errno == EADDRINUSE)
      throw Error(
          text("port ", port, " is in use on this host: is another job running? Choose another MASTER_PORT"));
    fail_system(text("listening at port ", port));
  }
  if (getsockname(s.get(), reinterpret_cast<sockaddr*>(&a), &n) != 0) fail_system("getsockname");
  port = ntohs(a.sin_port);
  return s;
}

Rendezvous::Rendezvous(RendezvousOptions o) : o_(std::move(o)) {
  CHECK(o_.size >= 1 && o_.rank >= 0 && o_.rank < o_.size, o_.rank, o_.size);
  CHECK(o_.key.size() == kJobKeyBytes, "a job key has", kJobKeyBytes, "bytes");
  if (sodium_init() < 0) throw Error("libsodium cannot be started");
  if (o_.size == 1) return;
  members_.resize(o_.rank == 0 ? size_t(o_.size) : 1);
  if (o_.rank == 0) {
    listener_ = listener();
    wait_for_all();
  } else {
    call();
  }
}
Rendezvous::~Rendezvous() = default;

std::vector<int> Rendezvous::ports() const {
  std::vector<int> all = {o_.port};
  all.insert(all.end(), o_.more_ports.begin(), o_.more_ports.end());
  return all;
}

std::string Rendezvous::where() const {
  std::string s = text(o_.host, ':', o_.port);
  for (int port : o_.more_ports) s += ", " + std::to_string(port);
  return s;
}

Fd Rendezvous::listener() {
  if (o_.listener) return std::move(o_.listener);
  if (o_.more_ports.empty()) return listen_at(o_.port, false);
  for (int port : ports()) try {
      return listen_at(port, false);
    } catch (const Error&) {  // try the next one
    }
  throw Error(text("rank 0 cannot listen at any of these ports of this host, all are in use: ", where()));
}

std::string Rendezvous::missing() const {
  std::vector<Rank> absent;
  for (Rank r = 1; r < o_.size; ++r)
    if (!members_[size_t(r)]) absent.push_back(r);
  return list(absent);
}

void Rendezvous::tell_all(const std::string& trouble) {
  for (const Fd& m : members_)
    if (m) write_trouble(m, trouble);
}

// For rank 0. Callers are served side by side, so that a silent one delays no other.
void Rendezvous::wait_for_all() {
  const Clock::time_point deadline = after(o_.deadline);
  std::vector<Caller> callers;
  int arrived = 1;
  const auto admit = [&](Caller& c) {  // false: a stranger
    Hello h;
    std::memcpy(&h, c.said.data(), sizeof h);
    if (h.magic != kMagic || h.version != kVersion) return false;
    if (!same(c.said.substr(sizeof h), tag_of(o_.key, c.challenge + c.said.substr(0, sizeof h))))
      return false;
    std::string refusal;
    if (h.size != uint32_t(o_.size))
      refusal = text("rank 0 expects ", o_.size, " workers, rank ", h.rank, " expects ", h.size);
    else if (h.rank == 0 || h.rank >= h.size || members_[h.rank])
      refusal = text("rank ", h.rank, " came twice: is another job using this address and key?");
    const std::string proof = tag_of(o_.key, std::string(h.nonce, kNonce) + "welcome");
    if (!write_all(c.socket, proof, after(1))) return true;
    if (!refusal.empty()) {
      write_trouble(c.socket, refusal);
      tell_all(refusal);
      throw Disagreement(refusal);
    }
    members_[h.rank] = std::move(c.socket);
    ++arrived;
    return true;
  };
  while (arrived < o_.size) {
    if (Clock::now() >= deadline) {
      const std::string trouble = text("no ", missing(), " after ", o_.deadline, " s; was it started? ",
                                       o_.size, " workers are expected at port ", o_.port, "; ", strangers_,
                                       " callers without the job's key were refused");
      tell_all(trouble);
      throw Timeout(-1, trouble);
    }
    std::vector<pollfd> waits = {{listener_.get(), POLLIN, 0}};
    for (const Caller& c : callers) waits.push_back({c.socket.get(), POLLIN, 0});
    poll(waits.data(), waits.size(), 50);
    for (size_t i = callers.size(); i-- > 0;) {
      Caller& c = callers[i];
      const bool there = waits[i + 1].revents == 0 || read_some(c);
      if (there && c.said.size() < kHelloBytes && Clock::now() < c.until) continue;
      if (!there || c.said.size() < kHelloBytes || !admit(c)) ++strangers_;
      callers.erase(callers.begin() + std::ptrdiff_t(i));
    }
    if (waits[0].revents != 0) {
      Caller c{accept_before(listener_, Clock::now()), random_bytes(kNonce), "", after(10)};
      if (c.socket && write_all(c.socket, c.challenge, after(1))) callers.push_back(std::move(c));
    }
  }
  listener_ = {};
}

std::vector<std::string> Rendezvous::serve_gather(const std::string& mine) {
  const Clock::time_point deadline = after(o_.deadline);
  std::vector<std::string> all(size_t(o_.size));
  all[0] = mine;
  std::vector<Rank> silent;
  for (Rank r = 1; r < o_.size; ++r)
    if (!read_string(members_[size_t(r)], all[size_t(r)], deadline)) silent.push_back(r);
  if (!silent.empty()) {
    const std::string trouble = text(list(silent), " left or fell silent while the workers were meeting");
    tell_all(trouble);
    throw Timeout(silent[0], trouble);
  }
  std::string table;
  for (const std::string& s : all) table += bytes_of(uint64_t(s.size())) + s;
  for (Rank r = 1; r < o_.size; ++r)
    if (!write_string(members_[size_t(r)], table, deadline)) silent.push_back(r);
  if (!silent.empty()) throw Timeout(silent[0], text(list(silent), " left while the workers were meeting"));
  return all;
}

std::vector<std::string> Rendezvous::all_gather(const std::string& mine) {
  if (o_.size == 1) return {mine};
  if (o_.rank == 0) return serve_gather(mine);
  // Rank 0 waits for its deadline and then names the missing ranks, so the others wait a little longer.
  const Clock::time_point deadline = after(o_.deadline + 5);
  std::string table;
  if (!write_string(members_[0], mine, deadline) || !read_string(members_[0], table, deadline))
    throw Timeout(0, "rank 0 left or fell silent while the workers were meeting");
  std::vector<std::string> all;
  size_t at = 0;
  for (uint64_t n = 0; table.size() - at >= sizeof n; at += size_t(n)) {
    std::memcpy(&n, table.data() + at, sizeof n);
    at += sizeof n;
    if (n > table.size() - at) break;
    all.push_back(table.substr(at, size_t(n)));
  }
  if (at != table.size() || int(all.size()) != o_.size)
    throw Disagreement(text("rank 0 sent a table of ", all.size(), " workers that does not add up, not of ",
                            o_.size, "; do all run the same version?"));
  return all;
}

}  // namespace skein::comm
