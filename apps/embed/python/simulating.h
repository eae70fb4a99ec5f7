// skein._skein.simulate: a Python gradient in a simulated world.
#pragma once
#include <nanobind/nanobind.h>

namespace skein::apps {

void define_simulate(nanobind::module_&);

}  // namespace skein::apps
