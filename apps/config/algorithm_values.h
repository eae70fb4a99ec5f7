// The values of the flags that only some algorithms read: those given and the algorithm's
// defaults for the rest.
#pragma once
#include <string>
#include <vector>

#include "apps/config/config.h"
#include "optim/strategy.h"

namespace skein::apps {

// What a strategy is made from: the algorithm's own flags, the seed and the length of an epoch.
optim::Options options_of(const Config&, int64_t steps_per_epoch = 1);

// The values that --algorithm will use for the flags that only some algorithms read. Throws BadOption if
// there is no such algorithm, or if it does not allow so many workers or these flags.
optim::Values own_values(const Config&, int world);

// Stores the same values in of_algorithm before any worker starts, so that the configuration shows
// what will run. Defaults that were stored before, or that a resumed run has recorded, are computed again,
// because they may depend on the number of workers.
void settle_algorithm(Config&, int world);
// The same when the number of workers has changed. A graph, hierarchy or elastic pull that so many cannot
// have gives way to the algorithm's own; then the line returned says so, otherwise it is empty.
std::string adapt_algorithm(Config&, int world);
// What gives way then.
void drop_flags_of_number(optim::Values&);

// Call it after reading the configuration of a resumed run: it separates the algorithm's defaults from
// what the user chose.
void recognize_defaults(Config&);

// Lines for the user about settings that a run of so many steps never reaches: workers that never meet, a
// switch that never comes.
std::vector<std::string> never_reached(const Config&, int world, int64_t total_steps,
                                       int64_t steps_per_epoch);

}  // namespace skein::apps
