// Runs that are compared: which of them repeat one another with other seeds, and what tells the others apart.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/report/report_data.h"

namespace skein::apps {

// Runs of the same flags but for the seed, and for what only says where and how to record.
struct RunGroup {
  std::vector<RunFiles> runs;
  std::string label;

  // Of one run its events. Of several those that all have, with means, "KEY_min" and "KEY_max" over the runs.
  Rows rows(const std::string& kind) const;
};

// In the order of their first runs. Labels are short and distinct: the algorithm, and of the other flags that
// differ as few as tell the groups apart; the directory where no flag does.
std::vector<RunGroup> group_runs(std::vector<RunFiles>);

// A flag, or a part of the environment that speed depends on, and its value in each group; empty
// where it has none.
using Values = std::vector<std::string>;
using FlagValues = std::vector<std::pair<std::string, Values>>;
struct Differences {
  FlagValues differ;
  std::vector<std::pair<std::string, std::string>> same;
};
Differences differences(const std::vector<RunGroup>&);

}  // namespace skein::apps
