// The tables of algorithms, optimizers, models and data sources as text.
#include "apps/config/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "apps/config/config.h"
#include "apps/config/help.h"
#include "apps/config/recipes.h"
#include "comm/topology/topology.h"
#include "data/source.h"
#include "engine/words/find_row.h"
#include "nn/models.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

template <class Rows>
std::string section(const std::string& title, const Rows& rows) {
  std::string out = title + "\n";
  for (const auto& row : rows) out += fmt::format("  {:<26} {}\n", row.name, row.source);
  return out;
}

}  // namespace

std::string list_tables(const std::string& what) {
  const std::vector<std::string> titles = {"algorithms", "optimizers", "models",
                                           "topologies", "data",       "recipes"};
  if (!what.empty() && std::find(titles.begin(), titles.end(), what) == titles.end())
    throw BadOption(text("--list: there is no table of ", what, ", but of ", joined(titles, ", ", " and "),
                         did_you_mean(what, titles)));
  std::string out;
  const auto wanted = [&](const char* title) { return what.empty() || what == title; };
  if (wanted("algorithms")) {
    out += "algorithms, and the defaults of the flags that they alone read\n";
    for (const optim::StrategyRow& row : optim::strategies()) {
      out += fmt::format("  {:<26} {}\n", row.name, row.source);
      if (const std::string values = defaults_of_algorithm(row.name); !values.empty())
        out += fmt::format("  {:<26}   {}\n", "", values);
    }
  }
  if (wanted("optimizers")) {
    out += "optimizers, and the defaults of the flags that they alone read\n";
    for (const optim::RuleRow& row : optim::rules()) {
      out += fmt::format("  {:<26} {}\n", row.name, row.source);
      out += fmt::format("  {:<26}   {}\n", "", defaults_of_optimizer(row.name));
    }
  }
  if (wanted("models")) out += section("models", nn::models());
  if (wanted("topologies")) out += section("topologies", comm::topologies());
  if (wanted("data")) out += section("data", data::sources());
  if (wanted("recipes")) out += section("recipes", recipes());
  return out;
}

}  // namespace skein::apps
