// The figures by which runs are compared, as a table.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/report/run_groups.h"

namespace skein::apps {

struct Figure {
  std::optional<double> value;   // mean over the runs of a group, if all have it
  std::optional<double> spread;  // standard deviation over the runs, where they differ
  bool best = false;             // of its column, which has more than one
};
struct FigureColumn {
  std::string name;
  std::string kind;             // percent, number, whole, duration, bytes, share: how it is written
  std::vector<Figure> figures;  // one a group
};

// Columns in which no group has a value are left out.
std::vector<FigureColumn> figures_of(const std::vector<RunGroup>&);

// Columns of text, a line for each group below a line of names.
std::string text_table(const std::vector<RunGroup>&, const std::vector<FigureColumn>&);

}  // namespace skein::apps
