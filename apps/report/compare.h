// train_imagenet --compare: several runs on the same axes, one self-contained page and a table of figures.
#pragma once
#include <string>
#include <vector>

#include "apps/report/report_data.h"

namespace skein::apps {

// The runs in these directories, which are runs or contain directories of runs. Each run is listed once.
// Throws BadOption naming a directory without any.
std::vector<RunFiles> find_runs(const std::vector<std::string>& directories);

struct Comparison {
  std::string page;                   // HTML
  std::string table;                  // text
  std::vector<std::string> warnings;  // lines
};
Comparison compare(std::vector<RunFiles>);  // needs at least one run

}  // namespace skein::apps
