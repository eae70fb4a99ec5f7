// All workers hold the mean of their models while worker 0 writes the files.
#include "apps/train/results.h"

#include <algorithm>
#include <filesystem>

#include "apps/base/together.h"
#include "apps/launch/refused.h"
#include "apps/model/weights.h"
#include "apps/report/report.h"
#include "comm/communicator/numbers.h"
#include "comm/communicator/words.h"
#include "comm/membership/council.h"
#include "engine/words/file.h"

namespace skein::apps {

namespace fs = std::filesystem;

Results::Results(Run& run, Batches& batches, Traces& traces, Learning& learning, Record& record,
                 Scoring& scoring)
    : run_(run),
      batches_(batches),
      traces_(traces),
      learning_(learning),
      record_(record),
      scoring_(scoring) {}

namespace {

// By all workers and by their server, if they have one and it has a network.
Json refused(const Run& run) {
  const Place& place = run.setup.place;
  comm::Refused all = refused_by_all(place.refusals, run.comm());
  if (run.first() && place.has_server && place.refusals) all += refused_by_server(run.survivors.hub());
  return to_json(all);
}

// By all workers in all steps; the last step of an epoch may have fewer than the others.
double images_taken(const Run& run) {
  const int64_t size = run.setup.data.train->size(), rest = run.k % run.setup.steps_per_epoch;
  return double(run.epochs() * size + std::min(size, rest * run.setup.global_batch));
}

// Until the last worker had taken its steps. Asynchronous ones take different times.
double longest_training(const Run& run) {
  double longest = 1e-9;
  for (const auto& one : comm::gather_numbers(run.comm(), {run.costs.seconds.training()}))
    longest = std::max(longest, one[0]);
  return longest;
}

}  // namespace

Outcome Results::write(bool interrupted) {
  comm::Communicator& comm = run_.comm();
  scoring_.hash_workers();
  if (!interrupted) scoring_.leave_average();
  const ConsensusModel consensus = learning_.consensus();
  scoring_.note_distance(consensus);
  record_.take_scale(true);
  run_.costs.count(comm);
  const Transfers transfers = sum_over_workers(comm, run_.costs.transfers);
  batches_.take_stock();
  const Seen mine{.sums = learning_.gradient.meters().total, .bytes = run_.bytes_sent()};
  const double images = run_.setup.place.council
                            ? images_taken(run_)  // lost workers' counts are lost with them
                            : over_workers(comm, mine).images;
  const Outcome out = outcome(interrupted, transfers, images / longest_training(run_));
  latest_ = out;
  const std::vector<std::vector<double>> seconds = comm::gather_numbers(comm, run_.costs.seconds.each());
  const Json timeline = traces_.timeline(), strangers = refused(run_);
  scoring_.leave_evaluation();
  together(comm, [&] {
    if (!run_.first()) return;
    const fs::path directory = run_.directory;
    Summary s = summary(out);
    if (!run_.setup.alone) s.costs.seconds_by_worker = seconds, s.environment.update(strangers);
    if (!interrupted)
      export_model((directory / "model.safetensors").string(), *run_.setup.model,
                   model_info(run_.config, run_.setup, run_.k));
    write_summary(run_.directory, s);
    if (!timeline.is_null()) write_file((directory / "timeline.json").string(), timeline.dump() + '\n');
    write_report(run_.directory);
  });
  if (comm::Council* const council = run_.setup.place.council) council->end_run({out.step, interrupted});
  traces_.write(comm);
  return out;
}

Outcome Results::ended(const comm::End& e) const {
  if (latest_ && latest_->step == e.step && latest_->interrupted == e.interrupted) return *latest_;
  Outcome out;
  out.step = e.step, out.interrupted = e.interrupted;
  return out;
}

Outcome Results::outcome(bool interrupted, const Transfers& all, double images_per_second) const {
  Outcome out{.step = run_.k,
              .interrupted = interrupted,
              .out_of_patience = scoring_.is_enough(),
              .score = scoring_.latest(),
              .ema = scoring_.latest_of_average(),
              .best = scoring_.best(),
              .hash = parameter_hash(learning_.flat, learning_.flat.x)};
  out.training_seconds = run_.costs.seconds.training();
  out.images_per_second = images_per_second;
  if (!run_.setup.alone)
    out.bytes_per_step = all.bytes / run_.comm().size() / double(std::max<int64_t>(run_.k, 1));
  if (all.in_flight > 0) out.hidden_share = 1 - all.waited / all.in_flight;
  return out;
}

Summary Results::summary(const Outcome& out) const {
  Summary s;
  s.steps = run_.k;
  s.epochs = run_.epochs_seen();
  s.interrupted = out.interrupted;
  s.costs.images_per_second = out.images_per_second;
  s.model.hash = out.hash;
  s.costs.bytes_per_step = out.bytes_per_step;
  s.costs.hidden_share = out.hidden_share;
  s.costs.predicted = Predicted::parse(run_.config.predicted);
  record_.describe(s);
  scoring_.describe(s.model);
  batches_.describe(s.data);
  const std::vector<double> spent = run_.costs.seconds.each();
  for (size_t kind = 0; kind < spent.size(); ++kind)
    s.costs.seconds_by_work.emplace_back(Seconds::kNames[kind], spent[kind]);
  if (const data::Shards& shards = run_.setup.portions->shards(); !shards.empty()) {
    s.data.classes = run_.setup.data.train->classes();
    s.data.labels =
        data::histograms(shards, data::labels_of(*run_.setup.data.train), int(s.data.classes.size()));
  }
  s.model.parameters = learning_.flat.count;
  s.workers.count = run_.setup.place.world;
  s.workers.global_batch = run_.setup.global_batch;
  s.environment = run_.environment();
  s.environment["cuda_graphs"] = learning_.gradient.graphs().describe();
  s.config = to_json(run_.config);
  return s;
}

}  // namespace skein::apps
