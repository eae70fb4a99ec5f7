// All workers probe; the first one simulates, alone, and prints.
#include "apps/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/base/clock.h"
#include "apps/base/together.h"
#include "apps/base/writable.h"
#include "apps/config/algorithm_values.h"
#include "apps/launch/interrupt.h"
#include "apps/launch/launch.h"
#include "apps/plan/plan_command.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

void refuse_with_plan(const Config& c) {
  for (const char* flag : {"simulate", "join", "record", "replay", "eval-only", "split"})
    if (asks_for(c, flag))
      throw BadOption(text(c.origin(flag).place, " does not go with --plan, which trains nothing"));
  if (!c.batch_size.is_number())
    throw BadOption(text(c.origin("batch-size").place, ": --plan needs one number for all workers"));
  if (optim::has_dedicated_server(options_of(c)))
    throw BadOption(text(c.origin("servers").place, " dedicated does not go with --plan, in whose simulated ",
                         "world all processes are workers; leave it out"));
}

// The probe's: nothing of an algorithm, and steps enough.
Config probing(Config c, int workers) {
  for (const Flag& f : flags())
    if (!f.algorithms.empty()) c.of_algorithm.erase(f.name), c.origins.erase(f.name);
  c.algorithm = "allreduce";
  c.elastic = "off", c.output.clear();
  constexpr int64_t kEnough = 1000;
  c.steps = kEnough, c.epochs = 0;
  settle_algorithm(c, workers);
  return c;
}

int simulate_and_print(const Command& command, char** argv, Probed probed, Progress& progress) {
  progress.say(fmt::format("probed for {:.0f} s; simulating", probed.seconds));
  Plan p{.config = command.config,
         .command = typed_words(command.config, argv),
         .fewer = typed_words(command.config, argv, true),
         .probed = std::move(probed)};
  const double from = clock_seconds();
  p.forecasts = forecasts(command.config, p.probed, candidates(command.config), p.refused);
  p.seconds = clock_seconds() - from;
  if (p.forecasts.empty()) throw Error("--plan: no algorithm is possible here: " + p.refused.front());
  say(stdout, in_words(p));  // first, because the page may not be possible to write
  if (!command.html.empty()) {
    write_file(command.html, plan_page(p));
    say(stdout, text("  ", command.html, "  the same, drawn, for a browser\n"));
  }
  return 0;
}

}  // namespace

int plan(const Command& command, char** argv) {
  refuse_with_plan(command.config);
  const int workers = planned_workers(job_options(command.config));
  if (workers < 2)
    throw BadOption("--plan is about several workers: give --workers N or --hosts A,B, as for the run");
  const Config c = probing(command.config, workers);
  JobOptions job = job_options(c);
  return run_job(job, argv, [&](const Member& me) {
    outlive_readers();
    Progress progress(stdout, Showing::kNone);
    together(me.comm, [&] {
      if (me.rank == 0 && !command.html.empty()) check_writable(command.html);
    });
    if (me.rank == 0)
      progress.say(text("probing ", me.world, " workers: their steps, then the links between them"));
    Probed probed = probe(c, me, progress);
    return me.rank == 0 ? simulate_and_print(command, argv, std::move(probed), progress) : 0;
  });
}

}  // namespace skein::apps
