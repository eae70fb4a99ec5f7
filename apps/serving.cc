// The server's center goes with its process from one epoch into the next.
#include "apps/serving.h"

#include "apps/config/algorithm_values.h"
#include "apps/launch/crew/losses.h"
#include "apps/launch/refused.h"
#include "comm/communicator/words.h"
#include "comm/membership/council.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

constexpr comm::Tag kDirectory = comm::kOwnTags - 5;
constexpr double kToHearTheEnd = 2;  // seconds that a server waits for words of workers that have all ended

void hear_directory(const Member& server) {
  if (const auto m = server.hub.poll(comm::kAnyone, kDirectory))
    server.announce(comm::text_of_bytes(m->payload));
}

}  // namespace

bool is_later_epoch(const Member& me) { return me.council && me.council->now().epoch > 1; }

void tell_server(const Member& me, const std::string& directory) {
  if (me.council && me.has_server && me.rank == 0)
    me.hub.push(me.world, kDirectory, 0, 1, comm::bytes_of_text(directory));
}

int serve(Config c, const Member& server, optim::Served& kept) {
  if (server.world == 0) throw Error("no worker is left for this server");
  if (is_later_epoch(server)) adapt_algorithm(c, server.world);
  const auto strategy = optim::make_strategy(c.algorithm, options_of(c), server.world);
  kept.meanwhile = [&server] {
    answer_refused(server);
    if (server.announce) hear_directory(server);
  };
  optim::with_server(*strategy).serve(server.hub, kept);
  if (!server.council) return 0;
  const bool changes = server.hub.transport().mailbox().epoch_ends();
  try {
    server.council->next(changes ? c.deadline : kToHearTheEnd);
    return kNextEpoch;
  } catch (const comm::RunEnded& e) {
    return e.end.interrupted ? kExitInterrupted : 0;
  } catch (const comm::Timeout&) {
    if (changes) throw;
    return kExitRuntime;
  }
}

}  // namespace skein::apps
