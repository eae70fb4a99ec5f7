// Finds the seat by RANK and WORLD_SIZE, OpenMPI, PMI or SLURM.
#include "apps/launch/seat.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>
#include <vector>

#include "apps/base/environment.h"
#include "apps/base/host.h"
#include "apps/launch/host_list.h"
#include "engine/base.h"

namespace skein::apps {
namespace {

constexpr int kFirstPort = 12000, kPorts = 18000;  // below the kernel's ephemeral ports (32768 and up)
constexpr int kMorePorts = 8;                      // how many are tried

// One launcher's variables for rank and world size.
struct Words {
  Seat::By by;
  std::string rank_name, world_name;
  std::optional<int> rank, world;
  std::string said() const { return text(world_name, '=', *world); }
};

Words words(Seat::By by, const std::string& rank_name, const std::string& world_name) {
  return {by, rank_name, world_name, number(rank_name), number(world_name)};
}

// Throws if only one of the two is set, or the rank is outside the world.
bool complete(const Words& w) {
  if (!w.rank && !w.world) return false;
  if (!w.rank || !w.world)
    throw BadOption(text(w.rank ? w.rank_name : w.world_name, " is set in the environment, ",
                         w.rank ? w.world_name : w.rank_name, " is not: set both or neither"));
  if (*w.world < 1 || *w.rank >= *w.world)
    throw BadOption(
        text(w.rank_name, "=", *w.rank, " ", w.said(), ": ranks count from 0 to ", w.world_name, " - 1"));
  return true;
}

std::string fit_for_a_file(std::string s) {
  for (char& c : s)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return s;
}

int between(int low, int x, int high) { return std::min(high, std::max(low, x)); }

void fill_slurm(Seat& s) {
  const std::string job = variable("SLURM_JOB_ID").value_or("0"),
                    step = variable("SLURM_STEP_ID").value_or("0");
  s.job = fit_for_a_file(text("slurm-", job, '-', step, '-', variable("SLURM_RESTART_COUNT").value_or("0")));
  s.node = variable("SLURMD_NODENAME").value_or(host_name());
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const auto list = variable(name); list && s.first_host.empty())
      s.first_host = expand_hosts(*list, name).front();
  const size_t seed = std::hash<std::string>{}(job + '.' + step);
  s.port = kFirstPort + int(seed % kPorts);
  s.local_rank = number("SLURM_LOCALID").value_or(0);
  s.cores = number("SLURM_CPUS_PER_TASK").value_or(0);
  const char* const counts = "SLURM_STEP_TASKS_PER_NODE";
  if (const auto tasks = variable(counts)) {
    const std::vector<int> each = expand_counts(*tasks, counts);
    const size_t node = size_t(number("SLURM_NODEID").value_or(0));
    if (node < each.size()) s.local_world = each[node];
  }
}

void fill_mpi(Seat& s, const char* local_rank, const char* local_world) {
  s.local_rank = number(local_rank).value_or(0);
  s.local_world = number(local_world).value_or(1);
  s.node = host_name();
  std::string job = "mpi";
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"})
    if (const auto v = variable(name); v && job == "mpi") job += '-' + *v;
  s.job = fit_for_a_file(job);
}

// torchrun's agent keeps its store at MASTER_PORT for its own clients. So rank 0 listens at one of several
// ports, derived from values that all trainers of this start share, and that other starts do not.
void fill_torchrun(Seat& s) {
  if (variable("TORCHELASTIC_USE_AGENT_STORE") != "True") return;
  const std::string start = text("torchrun-", variable("MASTER_PORT").value_or(""), '-',
                                 variable("TORCHELASTIC_RUN_ID").value_or(""), '-',
                                 variable("TORCHELASTIC_RESTART_COUNT").value_or("0"), '-', s.world);
  s.job = fit_for_a_file(start);
  for (int i = 0; i < kMorePorts; ++i)
    s.ports.push_back(kFirstPort + int(std::hash<std::string>{}(text(start, '.', i)) % kPorts));
}

// srun's own variables. A batch script, which is not a task of a step, lacks those of the step.
Words slurm_words() {
  Words w = words(Seat::kSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (!w.world) w.rank.reset();
  return w;
}

// PMIx has no variable for the number of processes; srun or the user sets it.
Words pmi_words(const Words& variables, const Words& slurm) {
  if (variable("PMI_RANK") || variable("PMI_SIZE")) return words(Seat::kPmi, "PMI_RANK", "PMI_SIZE");
  Words w = words(Seat::kPmi, "PMIX_RANK", "WORLD_SIZE");
  if (!w.rank || variables.rank) w.rank.reset(), w.world.reset();
  if (w.rank && !w.world) w.world = slurm.world;
  return w;
}

// RANK and WORLD_SIZE set by a script must not contradict the launcher.
void compare(const Words& variables, const Words& launcher) {
  const bool other_world = variables.world && *variables.world != *launcher.world;
  if (!other_world && (!variables.rank || *variables.rank == *launcher.rank)) return;
  const auto& [ours, theirs, n, m] =
      other_world ? std::tuple(variables.world_name, launcher.world_name, *variables.world, *launcher.world)
                  : std::tuple(variables.rank_name, launcher.rank_name, *variables.rank, *launcher.rank);
  throw BadOption(text("the environment contradicts itself: ", ours, '=', n, ", but ", theirs, '=', m,
                       "; unset ", ours, " to go by the launcher"));
}

}  // namespace

Seat seat_from_environment() {
  const Words variables = words(Seat::kVariables, "RANK", "WORLD_SIZE");
  const Words open_mpi = words(Seat::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  const Words slurm = slurm_words(), pmi = pmi_words(variables, slurm);
  std::optional<Words> launcher;
  for (const Words& w : {open_mpi, pmi, slurm})
    if (!launcher && complete(w)) launcher = w;
  // srun --mpi=pmi2 sets both kinds of variables; its own say more.
  if (launcher && slurm.rank == launcher->rank && slurm.world == launcher->world) launcher = slurm;

  Seat s;
  const bool whole = variables.rank && variables.world;
  if (launcher && *launcher->world > 1 && !whole) {
    compare(variables, *launcher);
  } else if (complete(variables)) {
    // torchrun assigns its own ranks, under a launcher that starts one torchrun on each host.
    if (launcher && launcher->world == variables.world && *launcher->world > 1 &&
        !variable("TORCHELASTIC_RUN_ID"))
      compare(variables, *launcher);
    launcher = variables;
  }
  if (!launcher) return s;
  s.by = launcher->by;
  s.rank = *launcher->rank, s.world = *launcher->world;
  s.said = launcher->said();
  s.told = s.world > 1 || s.by == Seat::kVariables;
  if (s.by == Seat::kSlurm) fill_slurm(s);
  if (s.by == Seat::kOpenMpi) fill_mpi(s, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (s.by == Seat::kPmi) fill_mpi(s, "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  if (s.by == Seat::kVariables) {
    s.local_rank = number("LOCAL_RANK").value_or(0), s.local_world = number("LOCAL_WORLD_SIZE").value_or(1);
    fill_torchrun(s);
  }
  s.local_world = between(1, s.local_world, s.world);
  return s;
}

}  // namespace skein::apps
