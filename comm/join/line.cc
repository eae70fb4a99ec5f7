// Line: greetings and sealed strings over a blocking socket.
#include "comm/join/line.h"

#include <cstring>

namespace skein::comm {
namespace {

constexpr uint64_t kTrouble = ~uint64_t(0);  // instead of a length: an error message follows

std::string bytes_of(uint64_t v) { return {reinterpret_cast<const char*>(&v), sizeof v}; }

}  // namespace

bool Line::write_string(const std::string& v, Clock::time_point until) {
  return write(bytes_of(v.size()), until) && write(v, until);
}

bool Line::write_trouble(const std::string& v) {
  return write(bytes_of(kTrouble), after(1)) && write_string(v, after(1));
}

bool Line::read_string(std::string& v, Clock::time_point until, uint64_t most) {
  const auto length = [&](uint64_t& n) {
    std::string raw;
    if (!read(raw, sizeof n, until)) return false;
    std::memcpy(&n, raw.data(), sizeof n);
    return true;
  };
  uint64_t n = 0;
  if (!length(n)) return false;
  const bool trouble = n == kTrouble;
  if (trouble && !length(n)) return false;
  if (n > most || !read(v, size_t(n), until)) return false;
  if (trouble) throw Timeout(-1, v);
  return true;
}

bool Line::write(const std::string& bytes, Clock::time_point deadline) {
  std::string sealed(bytes.size() + kTagBytes, 0);
  out.seal(bytes.data(), bytes.size(), sealed.data(), sealed.data() + bytes.size());
  return write_all(socket, sealed, deadline);
}

bool Line::read(std::string& bytes, size_t n, Clock::time_point deadline) {
  if (!read_all(socket, bytes, n + kTagBytes, deadline) || !in.open(bytes.data(), n, bytes.data() + n))
    return false;
  bytes.resize(n);
  return true;
}

std::optional<Line> call(Fd socket, const Credentials& mine, Rank to, Purpose p, Clock::time_point salted_by,
                         Clock::time_point proved_by, bool* refused) {
  Call greeting(mine, to, p);
  std::string salt, answer;
  if (!socket || !read_all(socket, salt, kSaltBytes, salted_by) ||
      !write_all(socket, greeting.hello(salt), proved_by) ||
      !read_all(socket, answer, kAnswerBytes, proved_by))
    return {};
  std::optional<Session> session = greeting.conclude(answer);
  if (refused) *refused = !session;
  if (!session) return {};
  return Line{std::move(socket), std::move(session->out), std::move(session->in)};
}

}  // namespace skein::comm
