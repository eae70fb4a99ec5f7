// The figures by which runs are compared, as a table.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/report/run_groups.h"

namespace skein::apps {

struct Figure {
  std::optional<double> value;   // mean over the runs of a group, if all have it
  std::optional<double> spread;  // standard deviation over the runs, if they differ
  bool best = false;             // the best value of a column with more than one
};
struct FigureColumn {
  std::string name;
  std::string kind;             // percent, number, whole, duration, bytes, share: its format
  std::vector<Figure> figures;  // one per group
};

// The columns in which some group has a value.
std::vector<FigureColumn> figures_of(const std::vector<RunGroup>&);

// Columns of text, a line for each group below a line of names.
std::string text_table(const std::vector<RunGroup>&, const std::vector<FigureColumn>&);

}  // namespace skein::apps
