// The page of report.html. {{TITLE}}, {{SCRIPT}} and {{DATA}} stand for what render_report() puts in.
#pragma once

namespace skein::apps {

extern const char kReportPage[];    // style and frame
extern const char kReportScript[];  // what draws

}  // namespace skein::apps
