// Finds the runs, and collects the data of their page.
#include "apps/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/model/class_words.h"
#include "apps/report/report_page.h"
#include "apps/report/run_figures.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

// Not for us is a directory of another user, or a link in a circle.
bool is_run(const fs::path& dir) {
  std::error_code none;
  return fs::exists(dir / "metrics.jsonl", none);
}

std::vector<fs::path> runs_below(const std::string& dir) {
  std::error_code none;
  if (!is_directory(dir))
    throw BadOption(text("--compare ", dir, ": ",
                         fs::exists(dir, none) ? "is no directory" : "there is no such directory",
                         "; give the directories of runs (--output of their training)"));
  if (is_run(dir)) return {dir};
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(dir))
    if (is_run(entry.path())) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  if (found.empty())
    throw BadOption(text("--compare ", dir,
                         ": holds no run: neither it nor a directory in it has a metrics.jsonl; give ",
                         "the directories of runs (--output of their training)"));
  return found;
}

Json json_of(const std::vector<FigureColumn>& columns, const std::vector<RunGroup>& groups) {
  Json out = {{"columns", Json::array()}, {"rows", Json::array()}};
  for (const FigureColumn& c : columns) out["columns"].push_back({{"name", c.name}, {"kind", c.kind}});
  bool seeds = false;
  for (size_t g = 0; g < groups.size(); ++g) {
    Json row = Json::array();
    for (const FigureColumn& c : columns) {
      const Figure& f = c.figures[g];
      Json cell = Json::object();
      if (f.value) cell["value"] = *f.value;
      if (f.spread) cell["spread"] = *f.spread;
      if (f.best) cell["best"] = true;
      seeds = seeds || f.spread;
      row.push_back(std::move(cell));
    }
    out["rows"].push_back(std::move(row));
  }
  out["note"] =
      seeds ? "\u00b1 standard deviation over seeds; bands of curves are from the smallest to the largest"
            : "";
  return out;
}

Json json_of(const RunGroup& group) {
  Json run = {{"label", group.label}, {"directories", Json::array()}, {"series", Json::object()}};
  for (const RunFiles& r : group.runs) run["directories"].push_back(r.directory);
  for (const char* kind : {"step", "eval"}) run["series"][kind] = columns(group.rows(kind));
  return run;
}

std::string title_of(const Differences& d, size_t runs) {
  std::string model, data;
  for (const auto& [name, value] : d.same) {
    if (name == "model") model = value;
    if (name == "data") data = value;
  }
  const std::string what = model + (model.empty() || data.empty() ? "" : " on ") + data;
  return fmt::format("{}{} run{}", what.empty() ? "" : what + ": ", runs, runs == 1 ? "" : "s compared");
}

std::string subtitle_of(const Differences& d) {
  std::string names;
  size_t n = 0;
  for (const auto& [name, values] : d.differ)
    if (++n <= 8) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "" : "They differ in " + names + (n > 8 ? fmt::format(" and {} more", n - 8) : "");
}

// Warnings about differences that make accuracies incomparable.
std::vector<std::string> warnings_of(const Differences& d) {
  for (const auto& [name, values] : d.differ) {
    if (name != "data") continue;
    std::vector<std::string> kinds;
    for (std::string v : values) {
      while (v.ends_with('/')) v.pop_back();  // imagefolder:photos/ is imagefolder:photos
      if (v.empty()) v = "unknown";
      if (std::find(kinds.begin(), kinds.end(), v) == kinds.end()) kinds.push_back(v);
    }
    if (kinds.size() < 2) return {};
    return {"These runs were trained on different data, so their accuracies and losses are not comparable: " +
            list_names(kinds, 200)};
  }
  return {};
}

}  // namespace

std::vector<RunFiles> find_runs(const std::vector<std::string>& directories) {
  std::vector<RunFiles> runs;
  std::vector<fs::path> seen;
  for (const std::string& dir : directories)
    for (const fs::path& path : runs_below(dir)) {
      const fs::path whole = fs::weakly_canonical(path);
      if (std::find(seen.begin(), seen.end(), whole) != seen.end()) continue;
      seen.push_back(whole);
      runs.push_back(read_run(path));
      runs.back().timeline = runs.back().evaluation = nullptr;
      if (runs.back().runs.empty())
        throw BadOption(
            text("--compare ", path.string(), ": its metrics.jsonl has no event of a run; leave it out"));
    }
  return runs;
}

Comparison compare(std::vector<RunFiles> runs) {
  const size_t count = runs.size();
  const std::vector<RunGroup> groups = group_runs(std::move(runs));
  const std::vector<FigureColumn> figures = figures_of(groups);
  const Differences found = differences(groups);
  Json data = {{"version", SKEIN_VERSION},          {"runs", Json::array()},
               {"table", json_of(figures, groups)}, {"differences", Json::object()},
               {"common", Json::object()},          {"warnings", warnings_of(found)}};
  for (const RunGroup& g : groups) data["runs"].push_back(json_of(g));
  for (const auto& [name, values] : found.differ) data["differences"][name] = values;
  for (const auto& [name, value] : found.same) data["common"][name] = value;
  return {render_page(title_of(found, count), subtitle_of(found),
                      {"values.js", "chart.js", "cursor.js", "legend.js", "compare.js"}, data),
          text_table(groups, figures), warnings_of(found)};
}

}  // namespace skein::apps
