// What newcomers have to know is broadcast as JSON.
#include "apps/train/legacy.h"

#include "apps/base/together.h"
#include "apps/checkpoint/pool.h"
#include "apps/checkpoint/reshare.h"

namespace skein::apps {

void Legacy::restore(comm::Communicator& comm, const std::string& algorithm, const optim::Walk& walk) const {
  Pool pool;
  if (has_state) pool.add(state.fields());
  pool.unite(comm, has_state);
  load_pooled(pool, algorithm, comm.rank(), Differing::kKeepOwn, walk);
}

void Legacy::share(comm::Communicator& comm) {
  Json mine = {{"directory", directory}, {"workers", workers_at_first}, {"batch", global_batch}};
  for (const ChangeEvent& e : changes) mine["changes"].push_back(to_json(e));
  const Json told = Json::parse(from_rank_zero(comm, mine.dump()));
  directory = told.at("directory");
  workers_at_first = told.at("workers");
  global_batch = told.at("batch");
  changes.clear();
  if (told.contains("changes"))
    for (const Json& e : told.at("changes")) changes.push_back(change_of(e));
}

}  // namespace skein::apps
