// --hosts: workers started through a fake ssh and, if installed, through a private sshd.
#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;

// The fake ssh gets the host and the command, notes both, and runs the command in a child shell here.
class Hosts : public ::testing::Test {
 protected:
  Hosts() {
    place_.write(
        "ssh",
        "#!/bin/sh\n"
        "echo \"$@\" >> calls\n"
        "[ \"$1\" = far ] && echo 'ssh: Could not resolve hostname far' >&2 && exit 255\n"
        "[ \"$1\" = bare ] && set -- \"$1\" \"$(echo \"$2\" | sed \"s#test -x '[^']*'#test -x /none#\")\"\n"
        "[ \"$1\" = other ] && set -- \"$1\" \"$(echo \"$2\" | sed \"s#cd '[^']*'#cd /none "
        "2>/dev/null#\")\"\n"
        "[ \"$1\" = mute ] && exec sleep 60\n"
        "sh -c \"$2\"\n");
    EXPECT_EQ(place_.run("chmod +x ssh").status, 0);
  }
  Ended run(const std::string& script) {
    return place_.run(
        "export SKEIN_SSH=./ssh\nMARK=" + place_.path().filename().string() +
        "\nLONG=\"--size 1000 --rounds 100000000 --deadline 20 --output $MARK{rank}.npy\"\n"
        "ours() { pgrep -f \"^[^ ]*gossip_avg.*$MARK\"; }\n"
        "await() { for i in $(seq 600); do [ \"$(ours | wc -l)\" -ge $1 ] && sleep 0.3 && return; "
        "sleep 0.05; done; echo too few; ours; }\n"
        "gone() { for i in $(seq 600); do [ -z \"$(ours)\" ] && echo gone && return; sleep 0.1; "
        "done; echo left; pgrep -fa -- $MARK; }\n" +
        script);
  }
  testing_programs::Workplace place_;
};

TEST_F(Hosts, HaveTheirWorkersAndKeepTheKeyOffCommandLines) {
  const Ended e =
      run("mkdir \"a 'quoted' place\" && cd a*place && SKEIN_SSH=../ssh $GOSSIP --hosts here:2,there "
          "--size 10 --rounds 3 --json");
  EXPECT_EQ(e.status, 0) << e.err;
  EXPECT_EQ(e.out.front(), '{') << e.out;  // the stdout of rank 0's host is as it is
  expect_has(e.out, "\"workers\":3");
  EXPECT_EQ(e.err, "");
  const std::string calls = "\n" + place_.read("a 'quoted' place/calls");
  for (const char* host : {"\nhere ", "\nthere "}) expect_has(calls, host);  // in any order
  EXPECT_EQ(calls.find("KEY"), std::string::npos) << calls;
  std::string digits;  // must not contain 32 bytes in hexadecimal
  for (const char c : calls) {
    digits = std::isxdigit(static_cast<unsigned char>(c)) ? digits + c : "";
    EXPECT_LT(digits.size(), 40u) << calls;
  }
}

TEST_F(Hosts, TrainToTheSameBitsAsOneHost) {
  const std::string train =
      "$TRAIN --data synthetic:8x8x1,classes=3,train=64,test=30 --model mlp --batch-size 8 --algorithm sgp "
      "--steps 6 --threads 1 ";
  const Ended e = run(train + "--hosts a:2,b:2 --output far && " + train +
                      "--workers 4 --output near; grep -ho '\"hash\": *\"[0-9a-f]*\"' far/summary.json "
                      "near/summary.json | sort -u | wc -l");
  EXPECT_EQ(e.status, 0) << e.err;
  EXPECT_EQ(e.out.substr(e.out.size() - 2), "1\n") << e.out << e.err;
}

TEST_F(Hosts, HaveTheirNamesBeforeWhatTheySay) {
  const Ended e = run("$GOSSIP --hosts here,there --input none{rank}.npy --rounds 3");
  EXPECT_EQ(e.status, 1) << e.err;
  EXPECT_TRUE(e.err.find("here: gossip_avg: none0.npy") != std::string::npos ||
              e.err.find("there: gossip_avg: none0.npy") != std::string::npos)
      << e.err;
}

TEST_F(Hosts, AreNamedWhenTheyCannotBeUsed) {
  const std::string tail = " --size 10 --rounds 3 --deadline 3; echo $?; gone";
  Ended e = run("$GOSSIP --hosts here,far" + tail);
  EXPECT_EQ(
      e.err,
      "gossip_avg: host far cannot be reached: ssh: Could not resolve hostname far; does `./ssh far true` "
      "work without a password?\n");
  EXPECT_EQ(e.out, "1\ngone\n");
  e = run("$GOSSIP --hosts here,bare" + tail);
  expect_has(e.err, "host bare: there is no program ");
  e = run("$GOSSIP --hosts here,other" + tail);
  expect_has(e.err, "host other: there is no directory ");
  e = run("$GOSSIP --hosts here,mute" + tail);
  expect_has(e.err, "1 of 2 hosts were ready after 3 s; mute did not answer");
  e = run("SKEIN_SSH=no-such-ssh $GOSSIP --hosts here,there" + tail);
  expect_has(e.err, "no-such-ssh, which is not here");
  EXPECT_EQ(e.out, "2\ngone\n");
}

TEST_F(Hosts, RefuseContradictions) {
  const auto refused = [&](const std::string& words) { return run(words + " --size 10 --rounds 3").err; };
  expect_has(refused("$GOSSIP --hosts a:2,b --workers 5"), "these are 3 workers, --workers says 5");
  expect_has(refused("$GOSSIP --hosts a,b --transport local"), "--transport local");
  expect_has(refused("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 $GOSSIP --hosts a,b"),
             "leave --hosts out");
  expect_has(refused("RANK=0 WORLD_SIZE=1 $GOSSIP --hosts a,b"), "leave --hosts out");
}

TEST_F(Hosts, AllStopOnCtrlC) {
  const Ended e =
      run("$GOSSIP --hosts a,b:2 $LONG & P=$!; await 6; kill -INT $P; wait $P; echo status $?; gone");
  expect_has(e.out, "stopped early");
  expect_has(e.out, "status 130\ngone\n");
}

// The caller and the three workers stand still; the processes that start workers on a host keep
// running to receive orders.
TEST_F(Hosts, AllStopOnCtrlZAndContinueTogether) {
  const Ended e =
      run("$GOSSIP --hosts a,b:2 $LONG & P=$!; await 6\n"
          "still() { for p in $(ours); do cut -d' ' -f3 /proc/$p/stat; done 2>/dev/null | grep -c T; }\n"
          "kill -TSTP $P; for i in $(seq 600); do [ $(still) = 4 ] && break; sleep 0.05; done; still\n"
          "kill -CONT $P; for i in $(seq 600); do [ $(still) = 0 ] && break; sleep 0.05; done; still\n"
          "kill -INT $P; wait $P; echo status $?; gone");
  EXPECT_EQ(e.out.substr(0, 4), "4\n0\n") << e.out << e.err;
  expect_has(e.out, "status 130\ngone\n");
}

// The caller's connections end with it, and so do the orders on the other side.
TEST_F(Hosts, StopWhenTheCallerDies) {
  const Ended e = run("$GOSSIP --hosts a,b:2 $LONG & P=$!; await 6; kill -KILL $P; wait $P; gone");
  expect_has(e.out, "gone\n");
}

// `lose` is what happens to the worker $W of rank 2, on host b.
TEST_F(Hosts, GoOnWithoutAWorkerThatIsLost) {
  for (const char* lose : {"kill -KILL $W", "kill -TERM $W"}) {
    const Ended e = run(
        std::string("$GOSSIP --hosts a:2,b:2 --size 1000 --rounds 100000000 --deadline 20 --json --output "
                    "$MARK{rank}.npy > log & P=$!; await 7\n"
                    "W=$(for p in $(ours); do grep -qz '^RANK=2$' /proc/$p/environ && echo $p; done)\n") +
        lose +
        "; for i in $(seq 600); do grep -qs 'membership epoch 2' .err && break; sleep 0.05; done\n"
        "sleep 1; kill -INT $P; wait $P; echo status $?; gone; cat log; ls");
    expect_has(e.out, "status 130\ngone\n");
    expect_has(e.out, "\"living\":[0,1,3]");
    expect_has(e.out, "3.npy");
    EXPECT_EQ(e.out.find("2.npy"), std::string::npos) << e.out;
    expect_has(e.err, "rank 2");
  }
}

TEST_F(Hosts, StopAllWhenAConnectionIsLost) {
  const Ended e =
      run("$GOSSIP --hosts a,b:2 $LONG --transport ucx & P=$!; await 6\n"
          "kill -KILL $(pgrep -P $P -f 'ssh b '); sleep 0.5; kill -INT $P; wait $P; gone");
  expect_has(e.out, "gone\n");
  expect_has(e.err, "host b was killed by signal 9");
  expect_has(e.err, "the program that started these workers is gone");
}

// A real sshd on a private port, with its own keys.
TEST_F(Hosts, AreReachedThroughARealSshd) {
  const Ended e = run(
      "[ -x /usr/sbin/sshd ] && command -v ssh ssh-keygen >/dev/null || { echo no sshd; exit 0; }\n"
      "[ $(id -u) -ne 0 ] || mkdir -p /run/sshd\n"
      "ssh-keygen -q -t ed25519 -N '' -f host_key; ssh-keygen -q -t ed25519 -N '' -f key\n"
      "PORT=$((21000 + $$ % 9000)); D=$PWD\n"
      "printf '%s\\n' \"Port $PORT\" 'ListenAddress 127.0.0.1' \"HostKey $D/host_key\" "
      "\"AuthorizedKeysFile $D/key.pub\" 'StrictModes no' 'UsePAM no' 'PidFile none' "
      "'PasswordAuthentication no' 'PermitRootLogin prohibit-password' > sshd_config\n"
      "printf '%s\\n' \"Port $PORT\" \"IdentityFile $D/key\" 'IdentitiesOnly yes' 'HostName 127.0.0.1' "
      "'StrictHostKeyChecking no' \"UserKnownHostsFile $D/known\" 'BatchMode yes' 'LogLevel ERROR' > config\n"
      "/usr/sbin/sshd -f sshd_config -D -e 2> sshd.log & SSHD=$!\n"
      "for i in $(seq 500); do ssh -F config one true 2> why && break; sleep 0.1; done\n"
      "ssh -F config one true 2> why || { echo no sshd: $(cat why sshd.log | tail -1); kill $SSHD; exit 0; "
      "}\n"
      "export SKEIN_SSH=\"ssh -F $D/config\"\n"
      "$GOSSIP --hosts one:2,two --size 10 --rounds 3 --json; echo status $?\n"
      "$GOSSIP --hosts one,two:2 $LONG & P=$!; await 6; kill -KILL $P; wait $P; gone; kill $SSHD; wait");
  if (e.out.find("no sshd") == 0) GTEST_SKIP() << e.out;
  expect_has(e.out, "\"workers\":3");
  expect_has(e.out, "status 0\n");
  expect_has(e.out, "gone\n");
}

}  // namespace
}  // namespace skein
