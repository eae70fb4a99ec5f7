// Line: greetings and sealed strings over a blocking socket.
#include "comm/join/line.h"

namespace skein::comm {

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
