// The timeline of a few steps for the report: an excerpt of the workers' traces.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/base/json.h"
#include "comm/communicator/communicator.h"

namespace skein::apps {

// In seconds of the spans' clock.
struct Excerpt {
  double begin = 0, end = 0;
  int64_t first_step = 0, last_step = 0;
};

// The last few steps with nothing else, such as an evaluation, between them; fewer steps if
// they have many spans.
std::optional<Excerpt> typical_steps(const std::vector<comm::Span>&);

// The spans that overlap the excerpt, clipped to it, as [track, name, begin, length, step, from, bytes] each.
// Times are in seconds since its beginning; -1 stands for what a span does not have.
Json spans_within(const std::vector<comm::Span>&, double begin, double end);

// Collective; call it when all have finished their steps. Returns the contents of DIR/timeline.json on
// rank 0 of the communicator, null elsewhere or without any step. Rank 0 chooses the steps, and at most
// sixteen workers are shown.
Json timeline(comm::Communicator&, int worker, const std::vector<comm::Span>&);

}  // namespace skein::apps
