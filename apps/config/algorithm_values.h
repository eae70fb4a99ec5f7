// The values of the flags that only some algorithms read: those given and, for the rest, the algorithm's own.
#pragma once
#include <string>
#include <vector>

#include "apps/config/config.h"
#include "optim/strategy.h"

namespace skein::apps {

// What a strategy is made from: the algorithm's own flags, the seed and the length of an epoch.
optim::Options options_of(const Config&, int64_t steps_per_epoch = 1);

// Of the flags that only some algorithms read, those that --algorithm does, with the values it will use.
// Throws BadOption: no such algorithm, not with so many workers, or not with these flags.
optim::Values own_values(const Config&, int world);

// The same into of_algorithm, before any worker starts: whatever shows the configuration then
// shows what runs. A default that the run to be resumed wrote down is made anew, as it may depend
// on the number of workers.
void settle_algorithm(Config&, int world);

// After the configuration of a run to be resumed was read: tells the algorithm's defaults in it from
// what its user chose.
void recognize_defaults(Config&);

// What the configuration asks for and a run of so many steps never reaches, as lines for its user: workers
// that never meet, a switch that never comes.
std::vector<std::string> never_reached(const Config&, int world, int64_t total_steps,
                                       int64_t steps_per_epoch);

}  // namespace skein::apps
