// All workers probe; the first one simulates, alone, and prints.
#include "apps/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/base/clock.h"
#include "apps/config/algorithm_values.h"
#include "apps/launch/interrupt.h"
#include "apps/launch/launch.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

void refuse_with_plan(const Config& c) {
  for (const char* flag : {"simulate", "join", "record", "replay", "eval-only", "split"})
    if (c.origin(flag).source > Source::kDefault)
      throw BadOption(text(c.origin(flag).place, " does not go with --plan, which trains nothing"));
  if (!c.batch_size.is_number())
    throw BadOption(text(c.origin("batch-size").place, ": --plan needs one number for all workers"));
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

// The words that started this program, as a shell reads them.
std::string words_of(char** argv) {
  std::string all;
  for (char** word = argv; *word; ++word) {
    const std::string w = *word;
    if (w == "--plan" || w.starts_with("--html=")) continue;
    if (w == "--html" || w == "--algorithm" || w == "--predicted") {
      if (word[1]) ++word;
      continue;
    }
    if (w.starts_with("--algorithm=") || w.starts_with("--predicted=")) continue;
    const bool plain = !w.empty() && w.find_first_not_of(
                                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                         "-_=./:,@%+") == std::string::npos;
    all += (all.empty() ? "" : " ") + (plain ? w : "'" + w + "'");
  }
  return all;
}

int simulate_and_print(const Command& command, char** argv, Probed probed, Progress& progress) {
  progress.say(fmt::format("probed for {:.0f} s; simulating", probed.seconds));
  Plan p{.config = command.config, .command = words_of(argv), .probed = std::move(probed)};
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
    if (me.rank == 0)
      progress.say(text("probing ", me.world, " workers: their steps, then the links between them"));
    Probed probed = probe(c, me, progress);
    return me.rank == 0 ? simulate_and_print(command, argv, std::move(probed), progress) : 0;
  });
}

}  // namespace skein::apps
