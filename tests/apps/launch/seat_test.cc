// Which rank a process is: lists of hosts, and the variables of each launcher, alone and together.
#include "apps/launch/seat.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include "engine/base.h"

extern char** environ;

namespace skein::apps {
namespace {

using Variables = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

// While it lives, the environment has only these variables of launchers.
class Environment {
 public:
  explicit Environment(const Variables& v) {
    for (char** e = environ; *e; ++e) before_.push_back(*e);
    clearenv();
    for (const auto& [name, value] : v) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    clearenv();
    for (const std::string& e : before_)
      setenv(e.substr(0, e.find('=')).c_str(), e.substr(e.find('=') + 1).c_str(), 1);
  }

 private:
  Names before_;
};

Seat seat(const Variables& v) {
  const Environment e(v);
  return seat_from_environment();
}
std::string refusal(const Variables& v) {
  const Environment e(v);
  try {
    seat_from_environment();
  } catch (const BadOption& error) { return error.what(); }
  return "";
}

// The environment of task 5 of 7 on the second of three nodes, as SLURM 22.05 sets it.
const Variables kSrun = {{"SLURM_PROCID", "5"},
                         {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4,2,1"},
                         {"SLURM_STEP_NODELIST", "gpu[09-10],login"},
                         {"SLURM_JOB_ID", "1234"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURMD_NODENAME", "gpu10"}};
Variables with(Variables v, const Variables& more) {
  for (const auto& [name, value] : more) v[name] = value;
  return v;
}

TEST(Seat, IsNobodysWithoutALauncher) {
  EXPECT_FALSE(seat({}).told);
  EXPECT_EQ(seat({}).world, 1);
}

TEST(Seat, FollowsTorchrun) {
  const Seat s = seat({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_TRUE(s.told);
  EXPECT_EQ(s.by, Seat::kVariables);
  EXPECT_EQ(s.rank, 2);
  EXPECT_EQ(s.world, 4);
  EXPECT_EQ(s.local_world, 2);
}

// torchrun's agent listens at MASTER_PORT itself, and says so.
TEST(Seat, TakesOtherPortsThanTorchrunsAgent) {
  const Variables agent = {{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "none"},
                           {"TORCHELASTIC_RESTART_COUNT", "0"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const Seat first = seat(agent), other_rank = seat(with(agent, {{"RANK", "1"}})),
             restarted = seat(with(agent, {{"TORCHELASTIC_RESTART_COUNT", "1"}})),
             other_job = seat(with(agent, {{"MASTER_PORT", "29501"}}));
  ASSERT_GE(first.ports.size(), 4u);
  for (int port : first.ports) EXPECT_TRUE(port > 1024 && port < 32768 && port != 29500) << port;
  EXPECT_EQ(first.ports, other_rank.ports);
  EXPECT_EQ(first.job, other_rank.job);
  EXPECT_NE(first.job, restarted.job);
  EXPECT_NE(first.job, other_job.job);
  EXPECT_NE(first.ports, restarted.ports);
  EXPECT_TRUE(seat(with(agent, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).ports.empty());
}

TEST(Seat, FollowsSlurm) {
  const Seat s = seat(kSrun);
  EXPECT_EQ(s.by, Seat::kSlurm);
  EXPECT_EQ(s.rank, 5);
  EXPECT_EQ(s.world, 7);
  EXPECT_EQ(s.local_rank, 1);
  EXPECT_EQ(s.local_world, 2);  // on the second node
  EXPECT_EQ(s.first_host, "gpu09");
  EXPECT_EQ(s.node, "gpu10");
  EXPECT_GT(s.port, 1024);
  EXPECT_LT(s.port, 32768);  // where kernels' ephemeral ports begin
}

TEST(Seat, TellsStartsOfAJobApart) {
  const Seat first = seat(kSrun), again = seat(with(kSrun, {{"SLURM_RESTART_COUNT", "1"}})),
             other_step = seat(with(kSrun, {{"SLURM_STEP_ID", "3"}}));
  EXPECT_EQ(first.port, seat(kSrun).port);
  EXPECT_NE(first.job, again.job);
  EXPECT_NE(first.job, other_step.job);
  EXPECT_NE(first.port, other_step.port);
}

// A batch script is task 0 of no step, and a shell under srun is a single task. Both may start workers.
TEST(Seat, LeavesABatchScriptAlone) {
  EXPECT_FALSE(seat({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1234"}}).told);
  EXPECT_FALSE(seat({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_JOB_ID", "1234"}}).told);
}

TEST(Seat, FollowsOpenMpiAlsoInsideSlurm) {
  const Variables mpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_RANK", "3"},
                         {"PMIX_NAMESPACE", "prterun-host/1@1"}};
  for (const Variables& v : {mpi, with(kSrun, mpi)}) {  // mpirun's helper is itself a task of a step
    const Seat s = seat(v);
    EXPECT_EQ(s.by, Seat::kOpenMpi);
    EXPECT_EQ(s.rank, 3);
    EXPECT_EQ(s.world, 8);
    EXPECT_EQ(s.local_world, 4);
    EXPECT_EQ(s.job.find('/'), std::string::npos) << s.job;
  }
}

TEST(Seat, FollowsPmiAndPmix) {
  const Variables hydra = {
      {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(seat(hydra).by, Seat::kPmi);
  EXPECT_EQ(seat(hydra).rank, 1);
  EXPECT_EQ(seat(hydra).local_world, 2);
  // srun --mpi=pmi2 sets both kinds of variables, and its own have an address.
  EXPECT_EQ(seat(with(kSrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}})).by, Seat::kSlurm);
  EXPECT_EQ(seat(with(kSrun, {{"PMIX_RANK", "5"}})).by, Seat::kSlurm);
  EXPECT_EQ(seat({{"PMIX_RANK", "1"}, {"WORLD_SIZE", "3"}}).rank, 1);
}

TEST(Seat, ListensToTheInnermostLauncher) {
  // torchrun on each of two nodes, itself started by srun
  const Seat s = seat(with(
      kSrun, {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"RANK", "6"}, {"WORLD_SIZE", "8"}}));
  EXPECT_EQ(s.by, Seat::kVariables);
  EXPECT_EQ(s.rank, 6);
  // what a script sets from SLURM's own numbers agrees with them
  EXPECT_EQ(seat(with(kSrun, {{"RANK", "5"}, {"WORLD_SIZE", "7"}})).rank, 5);
  EXPECT_EQ(seat(with(kSrun, {{"WORLD_SIZE", "7"}})).rank, 5);
}

TEST(Seat, RefusesHalvesAndContradictions) {
  const auto has = [](const std::string& whole, const std::string& part) {
    EXPECT_NE(whole.find(part), std::string::npos) << "'" << part << "' is not in: " << whole;
  };
  has(refusal({{"RANK", "0"}}), "WORLD_SIZE is not");
  has(refusal({{"OMPI_COMM_WORLD_SIZE", "2"}}), "OMPI_COMM_WORLD_RANK is not");
  has(refusal({{"PMI_RANK", "2"}}), "PMI_SIZE is not");
  has(refusal({{"RANK", "two"}, {"WORLD_SIZE", "4"}}), "RANK=two");
  has(refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), "ranks count from 0");
  has(refusal(with(kSrun, {{"WORLD_SIZE", "4"}})), "WORLD_SIZE=4, but SLURM_STEP_NUM_TASKS=7");
  has(refusal(with(kSrun, {{"RANK", "0"}, {"WORLD_SIZE", "7"}})), "RANK=0, but SLURM_PROCID=5");
}

// The message names the variable, its value and the fault, because its reader did not write the list.
TEST(Seat, NamesTheVariableOfABadList) {
  const Variables no_step = {{"SLURM_STEP_NODELIST", ""}};
  const auto said = [&](const char* name, const char* value) {
    return refusal(with(with(kSrun, no_step), {{name, value}}));
  };
  EXPECT_EQ(said("SLURM_STEP_NODELIST", "gpu[1"),
            "environment variable SLURM_STEP_NODELIST=gpu[1: the brackets do not match");
  EXPECT_EQ(said("SLURM_JOB_NODELIST", "gpu[1-x]"),
            "environment variable SLURM_JOB_NODELIST=gpu[1-x]: 'x' is no number");
  EXPECT_EQ(said("SLURM_STEP_TASKS_PER_NODE", "4(x2"),
            "environment variable SLURM_STEP_TASKS_PER_NODE=4(x2: '4(x2' is no count");
}

}  // namespace
}  // namespace skein::apps
