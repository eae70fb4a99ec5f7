// Declares make_NAME for every row of the table of algorithms, for rows that are made of others.
#pragma once
#include "optim/strategy.h"

namespace skein::optim {

#define STRATEGY(name, source, mixes, world1, model, apart, codec, flags) \
  std::unique_ptr<Strategy> make_##name(const Options&, int world);
#include "optim/strategies.def"
#undef STRATEGY

}  // namespace skein::optim
