// Which of the workers this process is, and how much of the host belongs to it.
#pragma once
#include "apps/config.h"

namespace skein::apps {

struct Place {
  int rank = 0, world = 1;
  int local_world = 1;  // workers on this host, this one included
};

// Decides from the configuration. Throws BadOption: no such algorithm, or not with so many workers.
Place launch(const Config&);

// Compute threads of this worker: --threads, or its share of the host's cores.
int compute_threads(const Config&, const Place&);
int data_threads(const Config&, const Place&);

}  // namespace skein::apps
