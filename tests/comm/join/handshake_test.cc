// Connections between ranks that know each other's address, and everybody else who calls there.
#include "comm/join/handshake.h"

#include <sys/resource.h>

#include <iterator>
#include <set>

#include "comm/transport.h"
#include "tests/support/keys.h"
#include "tests/support/roles.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

HandshakeOptions options(Rank me, std::vector<Rank> peers, std::function<Fd(Rank)> dial = {}) {
  return {.mine = {.key = kKey, .me = me, .size = 3},
          .peers = std::move(peers),
          .purposes = {Purpose::kHeartbeats, Purpose::kMessages},
          .dial = std::move(dial),
          .welcome = {},
          .deadline = Clock::now() + seconds(60)};
}

struct Site {
  int port = 0;
  const Fd listener = listen_tcp("127.0.0.1", {}, port);
  Fd caller() const { return connect_tcp({"127.0.0.1"}, port, Clock::now() + seconds(10)); }
  std::optional<Line> call_as(const Credentials& c, Purpose p = Purpose::kMessages, Rank to = 0) const {
    return call(caller(), c, to, p, Clock::now() + seconds(10), Clock::now() + seconds(10));
  }
};

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) { return e.what(); }
  return "";
}

TEST(Handshake, GivesEachPairAConnectionForEachPurpose) {
  Site site;
  Refusals::Counter strangers{0}, none{0};
  Lines theirs;
  std::thread other(
      [&] { theirs = handshake(options(1, {0}, [&](Rank) { return site.caller(); }), Fd(), none); });
  Lines ours = handshake(options(0, {1}), site.listener, strangers);
  other.join();
  const auto until = Clock::now() + seconds(10);
  for (const Purpose p : {Purpose::kHeartbeats, Purpose::kMessages}) {
    const std::string sent = text("for ", int(p));
    std::string got;
    EXPECT_TRUE(theirs.at({0, p}).write(sent, until));
    EXPECT_TRUE(ours.at({1, p}).read(got, sent.size(), until));
    EXPECT_EQ(got, sent);
  }
  EXPECT_EQ(strangers, 0);
}

TEST(Handshake, HangsUpOnStrangersAndCountsThem) {
  Site site;
  Refusals::Counter strangers{0}, none{0};
  std::thread knocking([&] {
    for (const std::string& words : {std::string(), std::string(kHelloBytes, 'x'), std::string(7, '\0')})
      write_all(site.caller(), words, Clock::now() + seconds(10));
    EXPECT_FALSE(site.call_as({.key = kOther, .me = 1}));
    EXPECT_FALSE(site.call_as({.key = kKey, .me = 1}, Purpose::kMessages, 2)) << "it calls another rank";
    EXPECT_FALSE(site.call_as({.key = kKey, .me = 1, .epoch = 1}));
    EXPECT_TRUE(site.call_as({.key = kKey, .me = 1}, Purpose::kTrial)) << "of this job, but not expected";
    EXPECT_TRUE(site.call_as({.key = kKey, .me = 2})) << "of this job, but not expected";
    handshake(options(1, {0}, [&](Rank) { return site.caller(); }), Fd(), none);
  });
  EXPECT_EQ(handshake(options(0, {1}), site.listener, strangers).size(), 2u);
  knocking.join();
  EXPECT_EQ(strangers, 7) << "who hangs up without a word is none";
}

TEST(Handshake, NamesWhoDidNotCome) {
  Site site;
  Refusals::Counter strangers{0};
  HandshakeOptions o = options(0, {1, 2});
  o.deadline = Clock::now() + milliseconds(50);
  EXPECT_NE(message_of<Timeout>([&] { handshake(o, site.listener, strangers); }).find("rank 1, 2"),
            std::string::npos);
}

// One rank waits to be called, the other one calls where nobody answers.
TEST(Handshake, EndsOnceItIsInVain) {
  Site site;
  Refusals::Counter strangers{0};
  for (const Rank me : {0, 1}) {
    int times = 0;
    HandshakeOptions o = options(me, {1 - me}, [](Rank) { return Fd(); });
    o.in_vain = [&] { return ++times == 2; };
    EXPECT_NE(message_of<Timeout>([&] { handshake(o, site.listener, strangers); }).find("has changed"),
              std::string::npos);
    EXPECT_EQ(times, 2);
    EXPECT_LT(Clock::now(), o.deadline);
  }
}

// Had each been waited for, all of them would have been refused by now.
TEST(Handshake, WaitsForNoSilentCaller) {
  Site site;
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(site.caller());
  Refusals::Counter strangers{0}, none{0};
  std::thread other([&] { handshake(options(1, {0}, [&](Rank) { return site.caller(); }), Fd(), none); });
  EXPECT_EQ(handshake(options(0, {1}), site.listener, strangers).size(), 2u);
  other.join();
  EXPECT_EQ(strangers, 0);
}

// Rank 1 opens more connections than rank 0 has descriptors, and says nothing; then it connects.
void crowd_out(Exchange& e, const std::string&) {
  Site site;
  if (e.rank() == 0) {
    rlimit few{48, 48};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  const int port = std::stoi(e.all_gather(std::to_string(site.port))[0]);
  const auto dial = [port](Rank) { return connect_tcp({"127.0.0.1"}, port, Clock::now() + seconds(10)); };
  std::vector<Fd> silent;
  for (int i = 0; e.rank() == 1 && i < 200; ++i) silent.push_back(dial(0));
  e.all_gather("");
  Refusals::Counter strangers{0};
  CHECK(handshake(options(e.rank(), {1 - e.rank()}, dial), site.listener, strangers).size() == 2);
  e.all_gather("");
}
const AddRole kCrowd("crowd out", crowd_out);

TEST(Handshake, OutlivesMoreCallersThanThereAreDescriptors) {
  Processes p("crowd out", 2, "");
  expect_all_end_well(p);
}

// Ports of TCP sockets at which this process listens.
std::set<std::string> listening() {
  std::set<std::string> own, found;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    own.insert(std::filesystem::read_symlink(fd, gone).string());
  }
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::vector<std::string> field(std::istream_iterator<std::string>(words), {});
    if (field.size() > 9 && field[3] == "0A" && own.count("socket:[" + field[9] + "]"))
      found.insert(field[1]);
  }
  return found;
}

void close_doors(Exchange& e, const std::string& argument) {
  const auto t = connect(e, way(argument));
  CHECK(listening().empty(), argument, "listens at", *listening().begin());
  Communicator c(*t, in_seconds(20));
  c.barrier();
}
const AddRole kDoors("close doors", close_doors);

TEST(Ports, AreClosedWhenAllHaveConnected) {
  {
    const Site site;
    EXPECT_EQ(listening().size(), 1u) << "else this test sees nothing";
  }
  for (const char* way : {"auto", "shared", "tcp", "ucx"}) {
    Processes p("close doors", 2, way);
    expect_all_end_well(p);
  }
}

TEST(PortRange, IsWhereSocketsListen) {
  const Site anywhere;  // a port that is taken
  const PortRange two{anywhere.port, anywhere.port == 65535 ? anywhere.port : anywhere.port + 1};
  int port = 0;
  try {
    const Fd one = listen_tcp("127.0.0.1", two, port);
    EXPECT_EQ(port, two.last) << "the other is taken";
  } catch (const Error&) {  // another process has it
  }
  const std::string why = message_of<Error>([&] {
    listen_tcp("127.0.0.1", {anywhere.port, anywhere.port}, port);
  });
  EXPECT_NE(why.find(text("port ", anywhere.port, " is in use")), std::string::npos) << why;
}

TEST(PortRange, IsTwoPorts) {
  EXPECT_TRUE(parse_port_range("").any());
  EXPECT_EQ(parse_port_range("4000-4100").first, 4000);
  EXPECT_EQ(parse_port_range("4000-4100").last, 4100);
  for (const char* word : {"4000", "4100-4000", "0-10", "1-65536", "a-b", "1-2x", "-1-5"})
    EXPECT_THROW(parse_port_range(word), BadOption) << word;
}

}  // namespace
}  // namespace skein::comm
