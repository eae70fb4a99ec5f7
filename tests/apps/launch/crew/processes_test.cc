// What a fresh worker finds in its environment. The workers are this test program again, in the
// role of CrewMember.
#include "apps/launch/crew/processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "apps/base/environment.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/job_key.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlace = "CREW_TEST_DIRECTORY";

// Worker 0 waits for the fresh one, worker 1 dies, and the fresh one tells what it has been given.
TEST(CrewMember, DISABLED_IsAStandIn) {
  const auto place = variable(kPlace);
  if (!place) GTEST_SKIP() << "a role that another test gives";
  alarm(50);
  const fs::path told = fs::path(*place) / "told";
  if (const auto job = variable(kJoinVariable)) {
    const auto key = given_job_key();
    std::ofstream(*place + "/aside") << *job << ' ' << *variable("LOCAL_RANK") << ' '
                                     << *variable("LOCAL_WORLD_SIZE") << ' ' << key->size() << ' '
                                     << variable("RANK").has_value() << variable("WORLD_SIZE").has_value()
                                     << variable("MASTER_PORT").has_value() << ' '
                                     << variable("MASTER_ADDR").value_or("everywhere");
    fs::rename(*place + "/aside", told);
    _exit(0);
  }
  report_membership("runs/one");
  if (number("RANK") == 1) kill(getpid(), SIGKILL);
  while (!fs::exists(told)) usleep(5000);
  _exit(0);
}

TEST(Processes, AFreshWorkerKnowsItsSeatTheKeyAndTheJob) {
  const fs::path place = fs::path(::testing::TempDir()) / text("crew_", getpid());
  fs::create_directories(place);
  setenv(kPlace, place.c_str(), 1);
  std::string words[] = {"apps_tests", "--gtest_also_run_disabled_tests", "--gtest_filter=CrewMember.*"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  EXPECT_EQ(run_processes(2, argv, {.loss = Loss::kIsReplaced, .patience = 5, .restarts = 1}), 0);
  unsetenv(kPlace);
  std::string told;
  std::getline(std::ifstream(place / "told"), told);
  EXPECT_EQ(told, "runs/one 1 2 32 000 127.0.0.1");
  fs::remove_all(place);
}

}  // namespace
}  // namespace skein::apps
