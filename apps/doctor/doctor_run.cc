// Checks that the run's data can be opened and its model made.
#include <fmt/format.h>

#include "apps/doctor/doctor.h"
#include "apps/setup/setup.h"

namespace skein::apps {

void check_run(const Patient& p, Findings& out) {
  const Config& c = p.config;
  if (c.data.empty()) return;
  try {
    const Setup s = open_setup(c, {.rank = p.seat.rank, .world = p.world, .local_world = p.here});
    const data::DataSource& train = *s.data.train;
    out.push_back(in_order(
        "run", fmt::format("{} on {}: {} training and {} test images of {} classes, {}x{}x{}", c.model,
                           c.data, train.size(), s.data.test->size(), train.classes().size(), s.image.height,
                           s.image.width, s.image.channels)));
  } catch (const Error& e) { out.push_back(problem("run", with_place(c, e.what()), "")); }
}

}  // namespace skein::apps
