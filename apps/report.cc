// From events to the columns the page draws.
#include "apps/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "apps/durable.h"
#include "apps/report_page.h"

namespace skein::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPoints = 1200;  // a curve has no more: a screen could not show them

// Nine digits are more than a screen can show and keep the page small.
double rounded(double v) {
  const std::string digits = fmt::format("{:.9g}", v);
  double r = v;
  std::from_chars(digits.data(), digits.data() + digits.size(), r);
  return r;
}

using Rows = std::map<int64_t, Json>;  // by step; after a resume the later event of a step counts

struct Events {
  std::vector<Json> runs;
  std::map<std::string, Rows> rows;
};

Events parse_events(const std::string& lines) {
  Events e;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const Json j = Json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("event") || !j["event"].is_string()) continue;  // a line being written
    if (!j.contains("step") || !j["step"].is_number_integer()) continue;
    if (j["event"] == "run")
      e.runs.push_back(j);
    else
      e.rows[j["event"].get<std::string>()][j["step"].get<int64_t>()] = j;
  }
  return e;
}

// One value for the events [first, last) of a bucket: the last position, the extremes of a band, else the mean.
Json merged(const std::string& key, const std::vector<const Json*>& bucket) {
  double sum = 0, low = INFINITY, high = -INFINITY, last = NAN;
  int64_t count = 0;
  for (const Json* j : bucket) {
    const auto at = j->find(key);
    if (at == j->end() || !at->is_number()) continue;
    last = at->get<double>();
    sum += last, ++count;
    low = std::min(low, last), high = std::max(high, last);
  }
  if (count == 0) return nullptr;
  if (key == "step" || key == "epoch" || key == "seconds") return rounded(last);
  if (key.ends_with("_min")) return rounded(low);
  if (key.ends_with("_max")) return rounded(high);
  return rounded(sum / double(count));
}

// {"step": [...], "loss": [...], ...}: every numeric field of these events, thinned to kMostPoints.
Json columns(const Rows& rows) {
  std::vector<std::string> keys;
  for (const auto& [step, j] : rows)
    for (const auto& [key, value] : j.items())
      if (value.is_number() && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  const size_t buckets = std::min(kMostPoints, rows.size());
  std::vector<std::vector<const Json*>> grouped(buckets);
  size_t i = 0;
  for (const auto& [step, j] : rows) grouped[i++ * buckets / rows.size()].push_back(&j);
  Json out = Json::object();
  for (const std::string& key : keys) {
    Json& column = out[key] = Json::array();
    for (const auto& bucket : grouped) column.push_back(merged(key, bucket));
  }
  return out;
}

std::string word(const Json& j, const char* key) {
  const auto at = j.find(key);
  if (at == j.end() || at->is_null()) return "";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

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

std::string replaced(std::string s, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = s.find(what, at)) != std::string::npos; at += by.size())
    s.replace(at, what.size(), by);
  return s;
}

std::string escaped(std::string s) {
  for (const auto& [c, by] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}) s = replaced(s, c, by);
  return s;
}

Json object_or_empty(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_object() ? j[key] : Json::object();
}

}  // namespace

std::string render_report(const std::string& metrics, const std::string& summary) {
  const Events events = parse_events(metrics);
  Json s = Json::parse(summary, nullptr, false);
  if (!s.is_object()) s = Json::object();
  const Json run = events.runs.empty() ? Json::object() : events.runs.back();
  const Json config = object_or_empty(s.empty() ? run : s, "config");
  const Json environment = object_or_empty(s.empty() ? run : s, "environment");
  const Json& workers = run.contains("workers") ? run["workers"]
                        : s.contains("workers") ? s["workers"]
                                                : Json(1);
  Json data = {{"title", title_of(config)},
               {"subtitle",
                subtitle_of(config, workers.is_number_integer() ? workers.get<int64_t>() : 1, environment)},
               {"state", s.empty()                       ? "running"
                         : s.value("interrupted", false) ? "interrupted"
                                                         : "finished"},
               {"version", s.value("version", SKEIN_VERSION)},
               {"workers", workers},
               {"summary", s},
               {"config", config},
               {"environment", environment},
               {"resumes", Json::array()},
               {"series", Json::object()}};
  data["summary"].erase("config");
  data["summary"].erase("environment");
  for (size_t i = 1; i < events.runs.size(); ++i) {
    const Json& r = events.runs[i];
    const double step = r.value("step", 0.0), per_epoch = r.value("steps_per_epoch", 1.0);
    data["resumes"].push_back(
        {{"step", step}, {"epoch", step / per_epoch}, {"seconds", r.value("seconds", 0.0)}});
  }
  for (const char* kind : {"step", "epoch", "eval"}) {
    const auto rows = events.rows.find(kind);
    data["series"][kind] = rows == events.rows.end() ? Json::object() : columns(rows->second);
  }
  // In a script element only '<' could end it; JSON has it inside strings alone, where the escape means the same.
  const std::string json =
      replaced(data.dump(-1, ' ', false, Json::error_handler_t::replace), "<", "\\u003c");
  const std::string title = escaped(data["title"].get<std::string>());
  const auto value_of = [&](const std::string& mark) {
    return mark == "TITLE" ? title : mark == "DATA" ? json : kReportScript;
  };
  // One pass, so that nothing put in is searched for marks.
  std::string page;
  const std::string frame = kReportPage;
  size_t from = 0;
  for (size_t at = 0; (at = frame.find("{{", from)) != std::string::npos;) {
    const size_t end = frame.find("}}", at);
    page += frame.substr(from, at - from) + value_of(frame.substr(at + 2, end - at - 2));
    from = end + 2;
  }
  return page + frame.substr(from);
}

std::string write_report(const std::string& dir) {
  const std::string summary = dir + "/summary.json", report = dir + "/report.html";
  write_file(report, render_report(read_file(dir + "/metrics.jsonl"),
                                   std::filesystem::exists(summary) ? read_file(summary) : ""));
  return report;
}

}  // namespace skein::apps
