// One worker on one host.
#include "apps/launch.h"

#include <algorithm>
#include <thread>

namespace skein::apps {

Place launch(const Config& c) {
  // Made once so that an unknown name or a bad flag of the algorithm is refused before anything else happens.
  naming_place(c, "algorithm",
               [&] { return optim::make_strategy(c.algorithm, options_of(c), int(c.workers)); });
  if (c.workers > 1)
    throw BadOption(
        text(c.origin("workers").place, ": this version trains with one worker, not with ", c.workers));
  return {};
}

int compute_threads(const Config& c, const Place& place) {
  if (c.threads > 0) return int(c.threads);
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  return std::max(1, cores / place.local_world);
}

int data_threads(const Config& c, const Place& place) {
  return c.data_threads > 0 ? int(c.data_threads) : compute_threads(c, place);
}

}  // namespace skein::apps
