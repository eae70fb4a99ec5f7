// The note by which newcomers find a running job, and what --join takes.
#include "apps/launch/membership_note.h"
#include "tests/support/says.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

struct MembershipNotes : ::testing::Test {
  fs::path run = fs::path(::testing::TempDir()) / text("membership_", getpid());
  MembershipNotes() { fs::create_directories(run); }
  ~MembershipNotes() override { fs::remove_all(run); }
  // What parse_join() refuses with.
  static std::string refusal(const std::string& where) {
    try {
      parse_join(where);
    } catch (const Error& e) { return e.what(); }
    return "";
  }
};

const MembershipNote kNote{7, {{{"node1", "10.0.0.7", "fe80::1%eth0"}, 4711}, {{"node2"}, 65535}}, {}};

TEST_F(MembershipNotes, ReadBackAsTheyWereWritten) {
  for (const std::string& key :
       {std::string(), std::string("0123456789abcdef\0\xff\x80\"0123456789xyz", 32)}) {
    MembershipNote n = kNote;
    if (!key.empty()) n.key = comm::Secret(key), n.decided_in = "0123456789abcdef";
    write_membership(run, n);
    struct stat s {};
    ASSERT_EQ(stat(membership_note_in(run).c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600u);
    const auto read = read_membership(run);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->epoch, n.epoch);
    EXPECT_EQ(read->doors, n.doors);
    EXPECT_EQ(read->decided_in, n.decided_in);
    EXPECT_EQ(read->key.hex(), n.key.hex());
  }
  remove_membership(run);
  EXPECT_FALSE(read_membership(run));
}

TEST_F(MembershipNotes, LeadToTheDoorsOfARun) {
  write_membership(run, kNote);
  const Destination d = parse_join(run);
  EXPECT_EQ(d.doors, kNote.doors);
  EXPECT_TRUE(d.key.empty());
  EXPECT_EQ(d.found, (run / "membership.json (epoch 7)").string());
  EXPECT_SAYS(std::string(nobody_answered(d, 60).what()),
              "names 2 workers, none of which has answered within 60 s; the job has ended");
}

TEST_F(MembershipNotes, AnAddressIsADoor) {
  EXPECT_EQ(parse_join("node1.cluster:4711").doors, (std::vector<DoorAddress>{{{"node1.cluster"}, 4711}}));
  EXPECT_EQ(parse_join("[fe80::1%eth0]:1").doors, (std::vector<DoorAddress>{{{"fe80::1%eth0"}, 1}}));
  for (const char* wrong : {"node1", "node1:", ":4711", "node1:0", "node1:65536", "fe80::1:80", "[node1]:80",
                            "a b:1", "node1:4711x", "[]:1", "nowhere/run", ""})
    EXPECT_SAYS(refusal(wrong), "is neither HOST:PORT nor the directory of a run") << wrong;
}

TEST_F(MembershipNotes, ADirectoryWithoutOneIsNoRunningJob) {
  EXPECT_SAYS(refusal(run), "is a run with --elastic on at work there");
}

TEST_F(MembershipNotes, ThatOthersCanReadAreRefused) {
  write_membership(run, kNote);
  fs::permissions(membership_note_in(run), fs::perms::group_read, fs::perm_options::add);
  EXPECT_SAYS(refusal(run), "chmod 600");
}

TEST_F(MembershipNotes, ThatAreMalformedAreRefused) {
  const auto note = [](const std::string& epoch, const std::string& members, const std::string& more = "") {
    return "{\"skein_membership\": 1, \"epoch\": " + epoch + ", \"members\": " + members + more + "}";
  };
  const auto parse = [](std::string bytes) { return parse_membership(bytes, "m.json"); };
  const std::string one = R"([{"hosts": ["a"], "port": 1}])";
  EXPECT_EQ(parse(note("1", one)).doors.size(), 1u);
  const std::string key = ", \"key\": \"" + std::string(64, 'a') + "\"";
  EXPECT_EQ(parse(note("1", one, key)).key.hex(), comm::Secret(std::string(32, '\xaa')).hex());
  for (const std::string& wrong :
       {std::string(), std::string("{}"), note("0", one), note("-1", one), note("1.5", one),
        note("4294967296", one), note("1", "[]"), note("1", "{}"), note("1", R"([{"hosts": [], "port": 1}])"),
        note("1", R"([{"hosts": ["a"], "port": 0}])"), note("1", R"([{"hosts": ["a"], "port": 65536}])"),
        note("1", R"([{"hosts": ["a b"], "port": 1}])"), note("1", R"([{"hosts": "a", "port": 1}])"),
        note("1", R"([{"port": 1}])"), note("1", one, ", \"key\": \"ab\""),
        note("1", one, ", \"key\": \"" + std::string(64, 'A') + "\""), note("1", one) + "x",
        note("1", one, R"(, "register": "../../etc/cron.d")"), note("1", one, R"(, "register": 7)")})
    EXPECT_THROW(parse(wrong), BadFile) << wrong;
}

}  // namespace
}  // namespace skein::apps
