// The facts about a run that come from several places.
#include "apps/train/run.h"

#include "apps/launch/device_choice.h"
#include "apps/launch/launch.h"
#include "engine/backend.h"
#include "optim/strategy.h"

namespace skein::apps {

Run::Run(const Config& c, Setup s, std::string where, Progress& p, Survivors& all)
    : config(c),
      setup(std::move(s)),
      directory(std::move(where)),
      progress(p),
      survivors(all),
      asynchronous(!setup.alone && optim::strategy_row(c.algorithm).asynchronous()),
      apart(setup.place.council && optim::strategy_row(c.algorithm).asynchronous()) {}

std::optional<double> Run::bytes_sent() const {
  return setup.alone ? std::nullopt : std::optional(costs.transfers.bytes);
}

Json Run::environment() const {
  Json e = describe_environment();
  describe_device(e, setup.device);
  e["threads"] = setup.threads;
  e["data_threads"] = setup.data_threads;
  if (!setup.data_cores.empty()) e["data_cores"] = setup.data_cores;
  e["backend"] = cpu::describe();
  if (!setup.messages.empty()) e["device_messages"] = setup.messages;
  if (setup.place.world > 1) e["transport"] = one_line(setup.place.ways);
  return e;
}

}  // namespace skein::apps
