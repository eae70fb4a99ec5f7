// Reads a run's directory for the pages: its events by kind and step, thinned into columns.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/base/json.h"

namespace skein::apps {

// By step; after a resume the later event of a step replaces the earlier one.
using Rows = std::map<int64_t, Json>;

struct RunFiles {
  std::string directory;
  std::vector<Json> runs;            // its "run" events: the beginning, and each resume
  std::vector<Json> lost;            // its "lost" events
  std::map<std::string, Rows> rows;  // the other kinds of events
  Json summary = Json::object();     // empty while the run is in progress
  Json timeline, evaluation;         // null if there is none

  Json config() const;       // from the summary or, without one, from the last "run" event
  Json environment() const;  // from the same place
  int64_t workers() const;
  int64_t global_batch() const;  // 0 if it does not say

 private:
  std::optional<int64_t> number(const char* key) const;  // of the last "run" event or the summary
};

// Parses the contents of metrics.jsonl, summary.json, timeline.json and evaluation.json, which may be empty.
// Lines that are not events are skipped. So is a summary with fewer steps than the events have, because the
// run was then resumed and is in progress.
RunFiles parse_run(const std::string& metrics, const std::string& summary, const std::string& timeline = "",
                   const std::string& evaluation = "");
// Reads DIR/metrics.jsonl and, if they exist, DIR/summary.json, DIR/timeline.json
// and DIR/evaluation.json. Throws BadFile.
RunFiles read_run(const std::string& dir);

// {"step": [...], "loss": [...], ...}: every numeric field of these events, in at most 1200 points, which
// is what a screen can show. A point is the mean of its events, the extreme for "_min" and "_max", and the
// last value for positions.
Json columns(const Rows&);
// {"step": columns, "epoch": columns, "eval": columns}.
Json series_of(const RunFiles&);

// The field as text; empty if there is none.
std::string word(const Json& object, const std::string& key);

}  // namespace skein::apps
