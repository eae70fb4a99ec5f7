// Makes the text of a run's page and the data of its scripts.
#include "apps/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "apps/base/printable.h"
#include "apps/config/algorithm_values.h"
#include "apps/launch/refused.h"
#include "apps/report/report_page.h"
#include "engine/words/file.h"
#include "engine/words/find_row.h"
#include "optim/schedule.h"

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

// "0.1 = 0.4 x 64/256": how the rate of the global batch, at the curve's peak, follows from --lr. "" if
// --lr is not scaled.
std::string rate_of(const Json& config, int64_t global) {
  const auto number = [&](const char* key) {
    const auto found = config.is_object() ? config.find(key) : config.end();
    return found != config.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const double lr = number("lr"), reference = number("reference-batch");
  if (lr <= 0 || reference <= 0 || global <= 0) return "";
  const optim::RuleRow* rule = find_row(optim::rules(), word(config, "optimizer"));
  return optim::scaled_rate_in_words(lr, global, int64_t(reference), rule ? rule->growth : 1);
}

std::string subtitle_of(const RunFiles& run) {
  const Json config = run.config(), environment = run.environment();
  const int64_t workers = run.workers(), global = run.global_batch();
  const std::string seed = word(config, "seed"), batch = global > 0 ? describe_batch(global, workers) : "",
                    rate = rate_of(config, global);
  return joined({word(config, "algorithm"), counted(workers, "worker"), batch.empty() ? "" : "batch " + batch,
                 rate.empty() ? "" : "rate " + rate, word(config, "precision"),
                 seed.empty() ? "" : "seed " + seed, word(environment, "processor")});
}

// The default configuration of the same algorithm with as many workers.
Json defaults_of(const Json& config, int64_t workers) {
  Config c;
  try {
    c.algorithm = word(config, "algorithm");
    settle_algorithm(c, int(workers));
  } catch (const BadOption&) {  // it is from another version of this program
  }
  Json all = to_json(c);
  all["algorithm"] = Config{}.algorithm;  // the algorithm itself was chosen
  return all;
}

// The positions on each axis at which training resumed.
Json resumes_of(const RunFiles& run) {
  Json all = Json::array();
  for (size_t i = 1; i < run.runs.size(); ++i) {
    const Json& r = run.runs[i];
    const double step = r.value("step", 0.0), per_epoch = r.value("steps_per_epoch", 1.0);
    all.push_back({{"step", step}, {"epoch", step / per_epoch}, {"seconds", r.value("seconds", 0.0)}});
  }
  return all;
}

// With very many classes, the page shows only the most frequent confusions.
Json shown(Json evaluation) {
  constexpr size_t kMostConfusions = 30;
  if (evaluation.is_object() && evaluation.contains("confusions"))
    if (Json& all = evaluation["confusions"]; all.is_array() && all.size() > kMostConfusions)
      all.erase(all.begin() + kMostConfusions, all.end());
  return evaluation;
}

// What was refused of what came over the network, in one row instead of one for each kind.
Json without_counts(Json environment, const comm::Refused& refused) {
  const Json kinds = to_json(refused);
  bool counted = false;
  for (const auto& [kind, n] : kinds.items()) counted |= environment.erase(kind) > 0;
  if (counted) environment["refused from the network"] = refused.sum() > 0 ? refused.words() : "nothing";
  return environment;
}

}  // namespace

constexpr int64_t kMostNamed = 8;  // workers

std::string describe_batch(int64_t global_batch, int64_t workers) {
  if (workers <= 1) return std::to_string(global_batch);
  const int64_t least = global_batch / workers, more = global_batch % workers;
  if (more == 0) return fmt::format("{} x {}", workers, least);
  if (workers > kMostNamed)
    return fmt::format("{} over {} workers: {} or {} each", global_batch, workers, least + 1, least);
  std::vector<int64_t> shares;
  for (int64_t r = 0; r < workers; ++r) shares.push_back(least + (r < more ? 1 : 0));
  return describe_batch(shares);
}

std::string describe_batch(const std::vector<int64_t>& shares) {
  const int64_t all = std::accumulate(shares.begin(), shares.end(), int64_t(0));
  if (shares.size() <= 1) return std::to_string(all);
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  std::string each;
  for (const int64_t n : shares) each += fmt::format("{}{}", each.empty() ? "" : ", ", n);
  if (int64_t(shares.size()) > kMostNamed) each = fmt::format("{} to {} each", *least, *most);
  return fmt::format("{} over {} workers: {}", all, shares.size(), each);
}

std::string describe_speeds(const std::vector<double>& speeds) {
  const auto [least, most] = std::minmax_element(speeds.begin(), speeds.end());
  if (int64_t(speeds.size()) > kMostNamed) return fmt::format("{:.4g} to {:.4g}", *least, *most);
  std::string all;
  for (size_t r = 0; r < speeds.size(); ++r)
    all += fmt::format("{}{:.4g}", r == 0 ? "" : r + 1 == speeds.size() ? " and " : ", ", speeds[r]);
  return all;
}

std::string render_report(const RunFiles& run) {
  const Json config = run.config();
  const comm::Refused refused = refused_in(run.environment());
  const Json& s = run.summary;
  Json data = {{"state", s.empty()                       ? "running"
                         : s.value("interrupted", false) ? "interrupted"
                                                         : "finished"},
               {"version", s.value("version", SKEIN_VERSION)},
               {"workers", run.workers()},
               {"summary", s},
               {"config", config},
               {"defaults", defaults_of(config, run.workers())},
               {"environment", without_counts(run.environment(), refused)},
               {"refused", {{"count", refused.sum()}, {"words", refused.words()}}},
               {"timeline", run.timeline},
               {"evaluation", shown(run.evaluation)},
               {"resumes", resumes_of(run)},
               {"lost", run.lost},
               {"series", series_of(run)}};
  data["summary"].erase("config");
  data["summary"].erase("environment");
  return render_page(
      title_of(config), subtitle_of(run),
      {"values.js", "chart.js", "cursor.js", "timeline.js", "evaluation.js", "time.js", "run.js"}, data);
}

std::string write_report(const std::string& dir) {
  write_file(dir + "/report.html", render_report(read_run(dir)));
  return dir + "/report.html";
}

}  // namespace skein::apps
