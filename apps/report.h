// DIR/report.html: curves and figures of a run, one self-contained page made from metrics.jsonl and
// summary.json.
#pragma once
#include <string>

#include "engine/base.h"

namespace skein::apps {

// Reads DIR/metrics.jsonl and, where it exists, DIR/summary.json; writes DIR/report.html atomically and
// returns its path. Needs nothing else, so a report can be made again at any time. Throws BadFile.
std::string write_report(const std::string& dir);

// The page from the contents of the two files; `summary` may be empty while a run is going on.
std::string render_report(const std::string& metrics, const std::string& summary);

}  // namespace skein::apps
