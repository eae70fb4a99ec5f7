// The page of report.html: style, frame and the script that draws; data go in where @DATA@ stands.
#pragma once

namespace skein::apps {
extern const char kReportPage[];  // also contains @TITLE@
}
