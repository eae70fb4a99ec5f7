// Groups runs for a comparison: those that differ only in the seed form a group, and flags
// that differ name it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/report/report_data.h"

namespace skein::apps {

// Runs with the same flags, except for the seed and for flags about where and how to record.
struct RunGroup {
  std::vector<RunFiles> runs;
  std::string label;

  // The events of a single run, or those that all runs have, with means, "KEY_min" and
  // "KEY_max" over the runs.
  Rows rows(const std::string& kind) const;
};

// Groups the runs, in the order of their first runs. Labels are short and distinct: the algorithm and the
// fewest other flags that distinguish the groups, or the directory if no flag does.
std::vector<RunGroup> group_runs(std::vector<RunFiles>);

// A flag, or a part of the environment that affects speed, and its value in each group; empty if it has none.
using Values = std::vector<std::string>;
using FlagValues = std::vector<std::pair<std::string, Values>>;
struct Differences {
  FlagValues differ;
  std::vector<std::pair<std::string, std::string>> same;
};
Differences differences(const std::vector<RunGroup>&);

}  // namespace skein::apps
