// --plan: which algorithm is fastest for this model on these machines, as the simulator says (docs/plan.md).
#pragma once
#include <string>
#include <vector>

#include "apps/command_line/command.h"
#include "apps/plan/forecast.h"

namespace skein::apps {

// What rank 0 knows when all is simulated.
struct Plan {
  const Config& config;
  std::string command;     // what the user typed, without what a setting decides: typed_words()
  std::string fewer = {};  // the same without the number of workers and their hosts
  Probed probed;
  std::vector<Forecast> forecasts = {};   // best first
  std::vector<std::string> refused = {};  // a line for each candidate that is not possible here
  double seconds = 0;                     // that simulating took
};

std::string command_of(const Plan&, const Forecast&);  // that starts it and tells it what is predicted
std::string verdict(const Plan&);                      // what is fastest, or that one machine is faster
// The workers of one host that are faster than all together; none: no setting is so slow.
std::optional<Fewer> faster_alone(const Plan&);
std::string command_of(const Plan&, const Fewer&);  // that starts them, on their host
// Of the settings within 3 % of the fastest, which the simulator cannot tell apart, that with the best
// measured accuracy; the fastest itself if none has any.
const Forecast& to_start(const Plan&);
// What to type, what is fastest first.
struct Start {
  std::string why, what, command;  // why: a line, or empty; what: "to start it"
};
std::vector<Start> starts(const Plan&);
double hours_of_epoch(const Plan&, const Forecast&);
std::string in_words(const Plan&);
std::string plan_page(const Plan&);  // HTML

// Probes, simulates and prints. Returns the exit status. `argv` is this program's.
int plan(const Command&, char** argv);

}  // namespace skein::apps
