// The doors of an elastic job of real processes: who has no business there is refused and counted, and a
// crowd of silent callers delays no change of the membership.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "apps/launch/membership_note.h"
#include "comm/join/door.h"
#include "comm/join/rendezvous.h"
#include "engine/words/file.h"
#include "tests/support/program.h"

namespace skein {
namespace {

using testing_programs::expect_has;

constexpr double kSoon = 20;      // seconds
constexpr double kAgreement = 5;  // within which a change is complete at the first attempt

// Four workers that no launcher watches, in a job whose key is known here.
class ElasticDoors : public ::testing::Test {
 protected:
  ElasticDoors() {
    write_file(place_.path() / "key", std::string(comm::kJobKeyBytes, 'k'), Writing::kPrivate);
    place_.run(
        "export SKEIN_KEY_FILE=$PWD/key MASTER_ADDR=127.0.0.1 MASTER_PORT=$((12000 + $$ % 20000))\n"
        "for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 timeout -s KILL 100 $TRAIN --data "
        "synthetic:12x12x1,classes=4,train=960,test=64 --image-size 12 --model small-cnn --batch-size 8 "
        "--algorithm allreduce --epochs 100000 --threads 1 --progress none --elastic on --output run > log$r "
        "2>&1 & echo $! > pid$r; done");
    await("\"step\"", 1);
  }
  ~ElasticDoors() override { place_.run("for r in 0 1 2 3; do pkill -KILL -P $(cat pid$r); done"); }
  // Until the run's events have had these words so often.
  void await(const std::string& words, int times) {
    const auto deadline = comm::after(60);
    const auto found = [&] {
      const std::string all = place_.read("run/metrics.jsonl");
      int n = 0;
      for (size_t at = 0; (at = all.find(words, at)) != std::string::npos; ++at) ++n;
      return n;
    };
    while (found() < times) {
      ASSERT_LT(comm::Clock::now(), deadline) << words << place_.read("log0");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  // Returns the event.
  apps::Json change_without(int worker, int number) {
    place_.run("pkill -KILL -P $(cat pid" + std::to_string(worker) + ")");
    await("\"event\":\"membership\"", number);
    std::istringstream lines(place_.read("run/metrics.jsonl"));
    apps::Json last;
    for (std::string line; std::getline(lines, line);)
      if (line.find("\"membership\"") != std::string::npos) last = apps::Json::parse(line);
    return last;
  }
  int door(size_t rank = 0) { return apps::read_membership(place_.path() / "run")->doors.at(rank).port; }
  comm::Fd dial(size_t rank = 0) { return comm::connect_tcp({"127.0.0.1"}, door(rank), comm::after(kSoon)); }

  const comm::Secret key_{std::string(comm::kJobKeyBytes, 'k')};
  testing_programs::Workplace place_;
};

template <class F>
std::string why(const F& is_refused) try {
  is_refused();
  return "it is not refused";
} catch (const Error& e) { return e.what(); }

TEST_F(ElasticDoors, RefuseAndCountWhoHasNoBusinessThere) {
  const auto soon = comm::after(kSoon);
  const auto knock = [&](const comm::Secret& key, const std::string& job) {
    return comm::knock({"127.0.0.1"}, door(), key, {{7, "1 127.0.0.1", false}, job}, comm::after(kSoon));
  };
  // A member of another job, and one of another model or another version.
  EXPECT_FALSE(knock(comm::Secret(std::string(comm::kJobKeyBytes, 'x')), "any"));
  expect_has(why([&] { knock(key_, "skein " SKEIN_VERSION ", mlp by allreduce, seed 1"); }),
             "the newcomer is skein " SKEIN_VERSION ", mlp by allreduce, seed 1");
  expect_has(why([&] { knock(key_, "skein 0.0, small-cnn by allreduce, seed 1"); }),
             "the newcomer is skein 0.0");
  expect_has(why([&] { comm::ask({"127.0.0.1"}, door(), key_, "skein 0.0", soon); }),
             "the newcomer is skein 0.0");
  // An excluded member that knows its rank and epoch: it is greeted, and what it has to say is not heard.
  auto line = comm::call(dial(), {.key = key_, .me = 3, .size = 4, .epoch = 1}, 0, comm::Purpose::kMessages,
                         soon, soon);
  std::string word;
  EXPECT_FALSE(line && line->read_string(word, soon));
  // Who repeats what a newcomer has said, on a connection of its own.
  const auto say = [&](comm::Fd s, const std::function<std::string(const std::string& salt)>& hello) {
    std::string salt, answer;
    EXPECT_TRUE(comm::read_all(s, salt, comm::kSaltBytes, soon) && comm::write_all(s, hello(salt), soon));
    return comm::read_all(s, answer, comm::kAnswerBytes, soon) ? answer : std::string();
  };
  comm::Call newcomer({.key = key_, .me = 0, .size = 1, .epoch = 0}, 0, comm::Purpose::kJoin);
  std::string said;
  EXPECT_NE(say(dial(), [&](const std::string& salt) { return said = newcomer.hello(salt); }),
            std::string(comm::kAnswerBytes, 0));
  EXPECT_EQ(say(dial(), [&](const std::string&) { return said; }), std::string(comm::kAnswerBytes, 0));

  EXPECT_EQ(change_without(3, 1).at("joined"), 0);
  place_.run(
      "for r in 0 1 2; do pkill -INT -P $(cat pid$r); done\n"
      "for i in $(seq 400); do pgrep -P $(cat pid0) > pgrep.out || break; sleep 0.05; done");
  expect_has(place_.read("log0"), "worker 0 refused 7 callers");
}

TEST_F(ElasticDoors, AThousandHalfOpenConnectionsDelayNoChange) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  {
    std::vector<comm::Fd> silent;
    const auto crowd = [&](size_t rank) {
      for (int i = 0; i < 1000; ++i) silent.push_back(dial(rank));
    };
    crowd(0);  // where the others meet next
    const apps::Json first = change_without(3, 1);
    EXPECT_LT(first.at("healed_s"), kAgreement) << first.dump();
    EXPECT_EQ(first.at("membership"), 2) << "they came together at their first attempt";
    crowd(1);
    const apps::Json second = change_without(0, 2);
    EXPECT_LT(second.at("healed_s"), kAgreement) << second.dump();
    EXPECT_EQ(second.at("membership"), 3);
    EXPECT_EQ(second.at("workers"), 2);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace skein
