// Only worker 0 writes events, about what it sees itself: asking the others would take time in the world.
#include "apps/flat/flat_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/base/digest.h"
#include "apps/launch/interrupt.h"
#include "apps/report/report.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

constexpr int64_t kMostListed = 256;  // workers with figures of their own in summary.json

double training_between(const Seconds& from, const Seconds& to) {
  return std::max(to.training() - from.training(), 1e-9);
}

}  // namespace

FlatRecord::FlatRecord(const Config& c, const FlatModel& m, const optim::Schedule& schedule,
                       std::string directory, Progress& progress)
    : config_(c),
      model_(m),
      schedule_(schedule),
      directory_(std::move(directory)),
      progress_(progress),
      log_(directory_) {
  write_file(directory_ + "/config.toml", to_toml(c));
  log_.write(RunEvent{.config = to_json(c),
                      .environment = environment(),
                      .steps_per_epoch = c.steps,
                      .total_steps = c.steps,
                      .global_batch = global_batch_of(c, c.workers),
                      .workers = int(c.workers)});
  moment_ = {.epochs = 1,
             .steps = c.steps,
             .loss = NAN,
             .top1 = NAN,
             .images_per_second = NAN,
             .workers = int(c.workers),
             .workers_at_first = int(c.workers)};
}

double FlatRecord::images(int64_t steps) const {
  return double(steps) * double(global_batch_of(config_, config_.workers));
}

Json FlatRecord::environment() const {
  Json e = describe_environment();
  e["transport"] = text("a simulated world of ", config_.workers, " workers");
  e["gradient"] = model_.words;
  return e;
}

void FlatRecord::step(const Simulated& s, int64_t steps, std::optional<double> loss, const Costs& costs) {
  const double real = s.world.real_seconds(), spent = training_between(last_.spent, costs.seconds);
  if (began_.steps < 0) began_.steps = double(steps - 1), began_.real = real;
  moment_.step = steps, moment_.epoch = double(steps) / double(config_.steps);
  moment_.virtual_seconds = s.world.now();
  moment_.events_per_second = double(s.world.events()) / std::max(real, 1e-9);
  moment_.seconds_left =
      (real - began_.real) / (double(steps) - began_.steps) * double(config_.steps - steps);
  if (steps % config_.log_every == 0 || steps == config_.steps) {
    moment_.loss = loss.value_or(NAN);
    moment_.images_per_second = images(steps - last_.step) / spent;
    moment_.peer_wait = (costs.seconds.peers - last_.spent.peers) / spent;
    log_.write(StepEvent{.step = steps,
                         .epoch = moment_.epoch,
                         .seconds = s.world.now(),
                         .loss = moment_.loss,
                         .top1 = NAN,
                         .learning_rate = schedule_.at(steps - 1),
                         .images_per_second = moment_.images_per_second,
                         .data_wait = 0,
                         .peer_wait = moment_.peer_wait,
                         .bytes = costs.transfers.bytes,
                         .scaling = {}});
    last_ = {steps, costs.seconds};
  }
  progress_.show(moment_);
}

void FlatRecord::ended(int rank, const Costs& costs) {
  if (rank == 0) first_ = costs.seconds;
  if (config_.workers <= kMostListed) {
    by_worker_.resize(size_t(config_.workers));
    by_worker_[size_t(rank)] = costs.seconds.each();
  }
  sums_.ended(rank, costs);
  seconds_ = std::max(seconds_, comm::clock_seconds() - comm::sim::Baton::kDawn);
}

void FlatSums::ended(int, const Costs& costs) {
  const double training = costs.seconds.training();
  longest_training = std::max(longest_training, training);
  most_waiting = std::max(most_waiting, costs.seconds.peers / std::max(training, 1e-9));
  all.bytes += costs.transfers.bytes;
  all.waited += costs.transfers.waited, all.in_flight += costs.transfers.in_flight;
  ++workers;
}

void FlatRecord::model(double loss, double distance, const Tensor& x) {
  loss_ = loss, apart_ = distance;
  Digest digest;
  digest.add(x.data<float>(), size_t(x.bytes()));
  hash_ = digest.hex();
}

Summary FlatRecord::summary_of(int64_t steps, double seconds) const {
  Summary s;
  s.steps = steps, s.epochs = double(steps) / double(config_.steps);
  s.costs.seconds = seconds, s.costs.predicted = Predicted::parse(config_.predicted);
  s.model.parameters = model_.parameters;
  s.workers.count = int(config_.workers), s.workers.global_batch = global_batch_of(config_, config_.workers);
  s.environment = environment(), s.config = to_json(config_);
  return s;
}

void FlatRecord::write() {
  Summary s = summary_of(config_.steps, seconds_);
  s.model.loss = loss_, s.model.consensus_distance = apart_, s.model.hash = hash_;
  s.costs.images_per_second = images(config_.steps) / std::max(sums_.longest_training, 1e-9);
  if (config_.workers > 1)
    s.costs.bytes_per_step = sums_.all.bytes / double(sums_.workers) / double(config_.steps);
  if (sums_.all.in_flight > 0) s.costs.hidden_share = 1 - sums_.all.waited / sums_.all.in_flight;
  const std::vector<double> spent = first_.each();
  for (size_t kind = 0; kind < spent.size(); ++kind)
    s.costs.seconds_by_work.emplace_back(Seconds::kNames[kind], spent[kind]);
  if (int64_t(by_worker_.size()) == sums_.workers) s.costs.seconds_by_worker = by_worker_;
  write_summary(directory_, s);
  write_report(directory_);
  std::string words = in_words(s.costs, sums_.longest_training);
  if (loss_)
    words = fmt::format("loss {:.6g} above the optimum's, workers {:.3g} apart\n", *loss_, *apart_) + words;
  say(stdout, words + fmt::format("  {0}/report.html   curves, for a browser\n  {0}/summary.json  figures\n",
                                  directory_));
}

void FlatRecord::write_unfinished() {
  Summary s = summary_of(moment_.step, moment_.virtual_seconds);
  s.interrupted = true;
  s.costs.images_per_second = images(s.steps) / std::max(s.costs.seconds, 1e-9);
  write_summary(directory_, s);
  write_report(directory_);
  say(stdout, fmt::format("stopped after step {} of {}; a simulation cannot be continued\n"
                          "  {}/report.html   curves until then, for a browser\n",
                          moment_.step, config_.steps, directory_));
}

}  // namespace skein::apps
