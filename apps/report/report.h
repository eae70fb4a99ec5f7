// DIR/report.html: curves and figures of a run on one self-contained page.
#pragma once
#include <string>

#include "apps/report/report_data.h"

namespace skein::apps {

// Reads DIR/metrics.jsonl and, if they exist, DIR/summary.json and DIR/timeline.json; writes
// DIR/report.html atomically and returns its path. It needs nothing else, so a report can be made again at
// any time. Throws BadFile.
std::string write_report(const std::string& dir);

// A step's images as the log and the page name them: "64", "4 x 16", "64 over 3 workers: 22, 21, 21".
std::string describe_batch(int64_t global_batch, int64_t workers);
std::string describe_batch(const std::vector<int64_t>& shares);             // of the workers
std::string describe_speeds(const std::vector<double>& images_per_second);  // "51 and 103"

std::string render_report(const RunFiles&);

}  // namespace skein::apps
