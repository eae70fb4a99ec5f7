// Parses lines into events, and makes the columns that a page draws.
#include "apps/report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

constexpr size_t kMostPoints = 1200;

// Nine digits are more than a screen can show and keep the page small.
double rounded(double v) {
  const std::string digits = fmt::format("{:.9g}", v);
  double r = v;
  std::from_chars(digits.data(), digits.data() + digits.size(), r);
  return r;
}

bool is_position(const std::string& key) {
  return key == "step" || key == "epoch" || key == "seconds" || key == "bytes";
}

// Merges the events of a bucket into one value: the last position, the extremes of a band, else the mean.
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
  if (is_position(key)) return rounded(last);
  if (key.ends_with("_min")) return rounded(low);
  if (key.ends_with("_max")) return rounded(high);
  return rounded(sum / double(count));
}

Json object_or_empty(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_object() ? j[key] : Json::object();
}

Json object_in(const std::string& json) {
  Json j = parse_json<Json>(json);
  return j.is_object() ? j : Json::object();
}

std::string text_if_any(const std::string& path) {
  return std::filesystem::exists(path) ? read_file(path) : "";
}

// The shares of the first workers, a number each; the last shares reach to the last step.
Rows rows_of_shares(const RunFiles& run) {
  constexpr size_t kMostDrawn = 8;  // workers
  Rows rows;
  const auto events = run.rows.find("shares"), steps = run.rows.find("step");
  if (events == run.rows.end()) return rows;
  for (const auto& [step, event] : events->second) {
    Json& row = rows[step] = Json::object();
    for (const char* at : {"step", "epoch", "seconds"}) row[at] = event.value(at, Json());
    const auto shares = event.find("shares");
    for (size_t w = 0;
         shares != event.end() && shares->is_array() && w < std::min(kMostDrawn, shares->size()); ++w)
      row[text("worker_", w)] = (*shares)[w];
  }
  if (steps == run.rows.end() || steps->second.rbegin()->first <= rows.rbegin()->first) return rows;
  const auto& [end, last] = *steps->second.rbegin();
  Json row = rows.rbegin()->second;
  for (const char* at : {"step", "epoch", "seconds"}) row[at] = last.value(at, Json());
  rows[end] = row;
  return rows;
}

}  // namespace

Json RunFiles::config() const {
  return !summary.empty() ? object_or_empty(summary, "config")
         : runs.empty()   ? Json::object()
                          : object_or_empty(runs.back(), "config");
}

Json RunFiles::environment() const {
  return !summary.empty() ? object_or_empty(summary, "environment")
         : runs.empty()   ? Json::object()
                          : object_or_empty(runs.back(), "environment");
}

// A number that no run can have is not believed.
int64_t RunFiles::workers() const {
  constexpr int64_t kMost = 1 << 16;
  const int64_t said = number("workers").value_or(1);
  return said > 0 && said <= kMost ? said : 1;
}

int64_t RunFiles::global_batch() const {
  if (const auto said = number("global_batch"); said && *said > 0) return *said;
  const Json all = config();  // of an older version: each worker has as many
  const auto each = all.find("batch-size");
  const bool sane = each != all.end() && each->is_number_integer() && *each >= 0 && *each < INT32_MAX;
  return sane ? each->get<int64_t>() * workers() : 0;
}

std::optional<int64_t> RunFiles::number(const char* key) const {
  for (const Json& j : {runs.empty() ? Json::object() : runs.back(), summary})
    if (j.contains(key) && j[key].is_number_integer()) return j[key].get<int64_t>();
  return {};
}

RunFiles parse_run(const std::string& metrics, const std::string& summary, const std::string& timeline,
                   const std::string& evaluation) {
  RunFiles run;
  std::istringstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    const Json j = parse_json<Json>(line);
    if (!j.is_object() || !j.contains("event") || !j["event"].is_string()) continue;  // a line being written
    if (!j.contains("step") || !j["step"].is_number_integer()) continue;
    if (j["event"] == "run")
      run.runs.push_back(j);
    else if (j["event"] == "lost")
      run.lost.push_back(j);
    else
      run.rows[j["event"].get<std::string>()][j["step"].get<int64_t>()] = j;
  }
  run.summary = object_in(summary);
  const auto steps = run.rows.find("step");
  const auto ended = run.summary.find("steps");
  if (steps != run.rows.end() && ended != run.summary.end() && ended->is_number_integer() &&
      ended->get<int64_t>() < steps->second.rbegin()->first)
    run.summary = Json::object();
  for (const auto& [said, part] : {std::pair{&timeline, &run.timeline}, {&evaluation, &run.evaluation}})
    if (Json j = object_in(*said); !j.empty()) *part = std::move(j);
  return run;
}

RunFiles read_run(const std::string& dir) {
  RunFiles run = parse_run(read_file(dir + "/metrics.jsonl"), text_if_any(dir + "/summary.json"),
                           text_if_any(dir + "/timeline.json"), text_if_any(dir + "/evaluation.json"));
  run.directory = dir;
  return run;
}

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

Json series_of(const RunFiles& run) {
  Json all = Json::object();
  for (const char* kind : {"step", "epoch", "eval"}) {
    const auto rows = run.rows.find(kind);
    all[kind] = rows == run.rows.end() ? Json::object() : columns(rows->second);
  }
  all["shares"] = columns(rows_of_shares(run));
  return all;
}

std::string word(const Json& j, const std::string& key) {
  const auto at = j.find(key);
  if (at == j.end() || at->is_null()) return "";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

}  // namespace skein::apps
