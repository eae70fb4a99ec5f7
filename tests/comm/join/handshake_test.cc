// Handshakes: strangers are hung up on and counted, and those who did not come are named.
#include "comm/join/handshake.h"

#include "tests/support/files.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;
using testing::message_of;

TEST(Handshake, HangsUpOnStrangersAndCountsThem) {
  const std::string name = "skein-test-" + hex(random_bytes(8));
  const std::vector<std::string> secrets = {std::string(32, 'a'), std::string(32, 'b')};
  const Fd listener = listen_unix(name, 8);
  int64_t strangers = 0;
  std::thread knocking([&] {
    for (const std::string& words : {std::string(), std::string(40, 'x'), std::string(7, '\0')}) {
      const Fd s = connect_unix(name);
      write_all(s, words, Clock::now() + milliseconds(500));
    }
    int64_t none = 0;
    HandshakeOptions wrong{.me = 1,
                           .peers = {0},
                           .secrets = {std::string(32, 'c'), secrets[1]},
                           .dial = {},
                           .welcome = {},
                           .deadline = {}};
    wrong.deadline = Clock::now() + std::chrono::seconds(10);
    wrong.dial = [&](Rank) { return connect_unix(name); };
    handshake(wrong, Fd(), none);  // says a wrong word and is hung up on
    HandshakeOptions right = wrong;
    right.secrets = secrets;
    EXPECT_EQ(handshake(right, Fd(), none).count(0), 1u);
  });
  HandshakeOptions m{
      .me = 0, .peers = {1}, .secrets = secrets, .dial = {}, .welcome = same_user, .deadline = {}};
  m.deadline = Clock::now() + std::chrono::seconds(10);
  EXPECT_EQ(handshake(m, listener, strangers).count(1), 1u);
  EXPECT_EQ(strangers, 4);
  knocking.join();
}

TEST(Handshake, NamesWhoDidNotCome) {
  const Fd listener = listen_unix("skein-test-" + hex(random_bytes(8)), 8);
  int64_t strangers = 0;
  HandshakeOptions m{.me = 0,
                     .peers = {1, 2},
                     .secrets = std::vector<std::string>(3),
                     .dial = {},
                     .welcome = same_user,
                     .deadline = {}};
  m.deadline = Clock::now() + milliseconds(50);
  EXPECT_NE(message_of<Timeout>([&] { handshake(m, listener, strangers); }).find("rank 1, 2"),
            std::string::npos);
}

}  // namespace
}  // namespace skein::comm
