// Makes a world of its description, and each worker a thread of it.
#include "apps/launch/simulated.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include "apps/launch/interrupt.h"
#include "comm/seal/greeting.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

using comm::sim::Id;
using comm::sim::World;

// A dedicated server has the number after those of all workers.
void prepare(World& world, const WorldFile::Fault& f, std::optional<Id> server) {
  using Kind = WorldFile::Fault::Kind;
  std::vector<Id> ids(f.workers.begin(), f.workers.end());
  if (f.server && server) ids.push_back(*server);
  world.at(f.at, [&world, ids, f] {
    if (f.kind == Kind::kCut) world.cut(ids);
    for (Id id : ids)
      if (f.kind == Kind::kHang)
        world.hang(id);
      else if (f.kind != Kind::kCut)
        world.kill(id, f.kind == Kind::kKill ? World::Death::kHangUp : World::Death::kSilence);
  });
  if (f.seconds > 0)
    world.at(f.at + f.seconds, [&world, ids, f] {
      if (f.kind == Kind::kCut) world.mend(ids);
      for (Id id : ids)
        if (f.kind == Kind::kHang) world.wake(id);
    });
}

// Until then what an earlier run wrote is gone, and a place where nothing can be written has shown.
class Log {
 public:
  Log(const World& w, const std::string& file) : world_(w), file_(file) {
    if (!file_.empty()) write_file(file_, "");
  }
  void write() const {
    if (!file_.empty()) write_file(file_, world_.log());
  }
  void write_of_failure() const noexcept {  // which is what there is to say
    try {
      write();
    } catch (const std::exception&) {}
  }

 private:
  const World& world_;
  const std::string& file_;
};

void run(World& world, const Log& log) {
  try {
    world.run();
  } catch (const comm::Timeout& e) {
    log.write_of_failure();
    throw comm::Timeout(e.rank,
                        text(e.what(), "; these are seconds of virtual time: where steps or links are ",
                             "slow, raise --deadline"));
  } catch (...) {
    log.write_of_failure();
    throw;
  }
  log.write();
}

}  // namespace

void refuse_in_world(const Config& c, const WorldFile& world) {
  const auto refuse = [&](const char* flag, const std::string& why) {
    throw BadOption(text(c.origin(flag).place, ": ", why));
  };
  if (c.origin("workers").source > Source::kResumed && c.workers != world.site.workers())
    refuse("workers", text(c.workers, ", but ", c.simulate, " has ", world.site.workers(), "; leave it out"));
  if (const auto folder = std::filesystem::path(world.log).parent_path();
      !folder.empty() && !skein::is_directory(folder))
    throw BadOption(text(c.simulate, ": log: there is no directory ", folder.string(), "; create it"));
  for (const char* flag : {"hosts", "join", "transport", "interface", "port-range", "seal"})
    if (asks_for(c, flag))
      refuse(flag, "does not go with --simulate, in whose world no network is real; leave it out");
  for (const char* flag : {"min-workers", "max-workers", "restarts"})
    if (asks_for(c, flag))
      refuse(flag, "workers neither join nor are replaced in a simulated world; leave it out");
  if (c.elastic == "on")
    refuse("elastic", "workers neither join nor are replaced in a simulated world; leave out --elastic on");
}

int run_simulated(const JobOptions& o, const WorldFile& file, const std::function<int(const Member&)>& work,
                  const SimulatedRun& how) {
  const int workers = file.site.workers();
  World world({.weather = file.weather,
               .silence = std::min(10.0, o.deadline / 2),
               .keeps_log = !file.log.empty(),
               .site = file.site,
               .stands_for = how.stands_for,
               .fibers = how.fibers});
  const Log log(world, file.log);
  std::vector<Id> all(size_t(workers + o.server));
  std::iota(all.begin(), all.end(), Id(0));
  std::vector<std::optional<int>> status(all.size());  // none: it was killed
  const comm::Secret key = comm::Secret::random(comm::kJobKeyBytes);
  for (const Id id : all)
    world.begin(id, [&, id] {
      omp_set_num_threads(std::max(1, omp_get_num_procs() / workers));
      const auto transport = world.connect(1, all, o.deadline);
      comm::Communicator c(*transport, {.deadline = o.deadline, .wire = o.wire, .key = key});
      const int r = c.rank();
      const double speed = file.speeds[size_t(world.host_of(id))];
      Simulated here{world, file, {world, file.pace, file.seed, r, workers, speed}};
      status[size_t(r)] =
          work_among(c, o.server ? workers : -1,
                     {.rank = r,
                      .world = workers,
                      .local_rank = r,
                      .local_world = workers,
                      .ways = r == 0 ? text("a simulated world of ", workers, " workers\n") : "",
                      .simulated = &here},
                     work);
    });
  const std::optional<Id> server = o.server ? std::optional(Id(workers)) : std::nullopt;
  for (const WorldFile::Fault& f : file.faults) prepare(world, f, server);
  suffer(world, file.rates, file.rates_until);
  run(world, log);
  if (std::none_of(status.begin(), status.begin() + workers, [](auto s) { return s.has_value(); }))
    throw Error("all simulated workers have been killed");
  if (!how.silent)
    say(stdout, fmt::format("simulated: {:.6f} s of virtual time in {:.1f} s, {} events\n", world.now(),
                            world.real_seconds(), world.events()));
  const auto failed = std::find_if(status.begin(), status.end(), [](auto s) { return s.value_or(0) != 0; });
  return failed == status.end() ? 0 : **failed;
}

}  // namespace skein::apps
