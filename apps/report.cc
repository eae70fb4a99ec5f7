// What the page of a run says, and what its scripts are given.
#include "apps/report.h"

#include <fmt/format.h>

#include "apps/durable.h"
#include "apps/report_page.h"

namespace skein::apps {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string s;
  for (const std::string& p : parts)
    if (!p.empty()) s += (s.empty() ? "" : " \u00b7 ") + p;
  return s;
}

std::string title_of(const Json& config) {
  const std::string model = word(config, "model"), data = word(config, "data");
  if (model.empty()) return "Training run";
  return data.empty() ? model : model + " on " + data;
}

std::string subtitle_of(const Json& config, int64_t workers, const Json& environment) {
  const std::string seed = word(config, "seed"), batch = word(config, "batch-size");
  return joined({word(config, "algorithm"), fmt::format("{} worker{}", workers, workers == 1 ? "" : "s"),
                 batch.empty() ? "" : "batch " + batch, word(config, "precision"),
                 seed.empty() ? "" : "seed " + seed, word(environment, "processor")});
}

// Where on each axis training resumed.
Json resumes_of(const RunFiles& run) {
  Json all = Json::array();
  for (size_t i = 1; i < run.runs.size(); ++i) {
    const Json& r = run.runs[i];
    const double step = r.value("step", 0.0), per_epoch = r.value("steps_per_epoch", 1.0);
    all.push_back({{"step", step}, {"epoch", step / per_epoch}, {"seconds", r.value("seconds", 0.0)}});
  }
  return all;
}

}  // namespace

std::string render_report(const RunFiles& run) {
  const Json config = run.config(), environment = run.environment();
  const Json& s = run.summary;
  Json data = {{"state", s.empty()                       ? "running"
                         : s.value("interrupted", false) ? "interrupted"
                                                         : "finished"},
               {"version", s.value("version", SKEIN_VERSION)},
               {"workers", run.workers()},
               {"summary", s},
               {"config", config},
               {"environment", environment},
               {"timeline", run.timeline},
               {"resumes", resumes_of(run)},
               {"series", series_of(run)}};
  data["summary"].erase("config");
  data["summary"].erase("environment");
  return render_page(title_of(config), subtitle_of(config, run.workers(), environment),
                     {"values.js", "chart.js", "cursor.js", "timeline.js", "run.js"}, data);
}

std::string write_report(const std::string& dir) {
  write_file(dir + "/report.html", render_report(read_run(dir)));
  return dir + "/report.html";
}

}  // namespace skein::apps
