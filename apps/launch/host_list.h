// Lists of hosts: as SLURM writes them, and as --hosts takes them.
#pragma once
#include <string>
#include <vector>

namespace skein::apps {

// Workers of one job, and so hosts of a list. Each keeps state of every other, so no job gets near; more is a
// slip of the pen, and refused before memory is taken for it. --workers has the same limit in flags.def.
inline constexpr int kMostWorkers = 65536;

// "gpu[01-03,7]-ib,login" is gpu01-ib gpu02-ib gpu03-ib gpu7-ib login; several brackets multiply, the last
// fastest. Throws BadOption if the brackets make no sense; it names `variable`, of the environment, where the
// list comes from one.
std::vector<std::string> expand_hosts(const std::string& list, const std::string& variable = {});
// "4(x2),1" is 4 4 1, as in SLURM_STEP_TASKS_PER_NODE. Throws BadOption likewise.
std::vector<int> expand_counts(const std::string& list, const std::string& variable = {});

struct HostShare {
  std::string name;  // as ssh takes it: host, or user@host
  int workers = 1;
};
// "a,b:4": one worker on a, four on b. Without any number, `workers` (0: one a host) are spread evenly.
// Throws BadOption if the numbers are none, do not add up to `workers`, or cannot be even, and for a host
// that is named twice.
std::vector<HostShare> parse_hosts(const std::string& list, int workers);

}  // namespace skein::apps
