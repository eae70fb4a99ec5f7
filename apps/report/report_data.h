// What a run left in its directory, as the pages need it: its events by kind and step, thinned into columns.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/base/json.h"

namespace skein::apps {

using Rows = std::map<int64_t, Json>;  // by step; after a resume the later event of a step counts

struct RunFiles {
  std::string directory;
  std::vector<Json> runs;            // its "run" events: the beginning, and each resume
  std::vector<Json> lost;            // its "lost" events
  std::map<std::string, Rows> rows;  // of the other kinds of events
  Json summary = Json::object();     // empty while the run is going on
  Json timeline, evaluation;         // null if there is none

  Json config() const;       // of the summary or, without one, of the last "run" event
  Json environment() const;  // likewise
  int64_t workers() const;
};

// From the contents of metrics.jsonl and summary.json, which may be empty. Lines that are no events
// are passed over, and so is a summary of fewer steps than there are events of: the run has been
// resumed and goes on.
RunFiles parse_run(const std::string& metrics, const std::string& summary);
// Reads DIR/metrics.jsonl and, where they exist, DIR/summary.json, DIR/timeline.json
// and DIR/evaluation.json. Throws BadFile.
RunFiles read_run(const std::string& dir);

// {"step": [...], "loss": [...], ...}: every numeric field of these events, in at most 1200 points, which are
// as many as a screen could show: means, of "_min" and "_max" the extremes, of the position the last.
Json columns(const Rows&);
// {"step": columns, "epoch": columns, "eval": columns}.
Json series_of(const RunFiles&);

// The field as text; empty where there is none.
std::string word(const Json& object, const std::string& key);

}  // namespace skein::apps
