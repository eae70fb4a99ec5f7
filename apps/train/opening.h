// The directory of a run, and the files that are open while it trains.
#pragma once
#include "apps/train/record.h"
#include "apps/train/saving.h"
#include "apps/train/scoring.h"
#include "apps/train/traces.h"

namespace skein::apps {

// Makes and opens them, once, in the first worker. A run that cannot begin leaves no directory behind.
void open_directory(Run&, Record&, Scoring&, Saving&, Traces&);

}  // namespace skein::apps
