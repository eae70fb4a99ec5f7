// The time line of a few steps for the report: an excerpt of what the workers' traces hold.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "comm/communicator/communicator.h"

namespace skein::apps {

// Of the clock of the spans, seconds.
struct Excerpt {
  double begin = 0, end = 0;
  int64_t first_step = 0, last_step = 0;
};

// The last few steps between which nothing else was done, an evaluation for example; of
// many spans fewer steps.
std::optional<Excerpt> typical_steps(const std::vector<comm::Span>&);

// The spans that reach into the excerpt, cut to it, as [track, name, begin, length, step, from, bytes] each;
// seconds since its beginning, and -1 for what a span does not have.
Json spans_within(const std::vector<comm::Span>&, double begin, double end);

// Collective, where all are done with their steps. On rank 0 of the communicator the contents of
// DIR/timeline.json, elsewhere and without any step null: rank 0 chooses the steps, and at most sixteen
// workers are shown.
Json timeline(comm::Communicator&, int worker, const std::vector<comm::Span>&);

}  // namespace skein::apps
