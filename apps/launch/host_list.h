// Lists of hosts, as SLURM writes them and as --hosts takes them.
#pragma once
#include <string>
#include <vector>

namespace skein::apps {

// The most workers of one job, and so the most hosts of a list. Each worker keeps state of every other, so no
// real job comes near; more must be a typing error, and is refused before memory is allocated for it.
// --workers has the same limit in flags.def.
inline constexpr int kMostWorkers = 65536;

// "gpu[01-03,7]-ib,login" is gpu01-ib gpu02-ib gpu03-ib gpu7-ib login; several brackets multiply, the
// last fastest. Throws BadOption if the brackets are malformed, naming the environment's `variable` if
// the list comes from one.
std::vector<std::string> expand_hosts(const std::string& list, const std::string& variable = {});
// "4(x2),1" is 4 4 1, as in SLURM_STEP_TASKS_PER_NODE. Throws BadOption in the same way.
std::vector<int> expand_counts(const std::string& list, const std::string& variable = {});

struct HostShare {
  std::string name;  // as ssh takes it: host, or user@host
  int workers = 1;
};
// "a,b:4": one worker on a, four on b. Without any number, `workers` (0: one per host) are spread evenly.
// Throws BadOption if a number is malformed, the numbers do not add up to `workers`, `workers` cannot be
// spread evenly, or a host is named twice.
std::vector<HostShare> parse_hosts(const std::string& list, int workers);

}  // namespace skein::apps
