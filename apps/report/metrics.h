// The record of a run: DIR/metrics.jsonl, with one event per line, and DIR/summary.json. See docs/metrics.md.
#pragma once
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/base/json.h"
#include "apps/config/predicted.h"
#include "engine/base.h"

namespace skein::apps {

// The mean over the workers and, if there are several, the smallest and the largest.
struct Spread {
  double mean = 0;
  std::optional<double> min, max;
  Spread(double m = 0) : mean(m) {}
  Spread(double m, double lo, double hi) : mean(m), min(lo), max(hi) {}
};

// The smallest loss scale of the workers, and how many steps it skipped so far, as a mean over the workers.
struct Scaling {
  double scale = 1, skipped = 0;
};

// `seconds` in every event counts from the start of training and includes earlier runs of it.
struct RunEvent {  // the first line, and again after each resume
  int64_t step = 0;
  double seconds = 0;
  Json config = Json::object();       // the effective configuration, flags without dashes
  Json environment = Json::object();  // versions, processor, device, host, threads
  int64_t steps_per_epoch = 1, total_steps = 0, global_batch = 0;
  int workers = 1;
};
struct StepEvent {
  int64_t step = 0;  // steps taken
  double epoch = 0;  // epochs seen, with fraction
  double seconds = 0;
  Spread loss = {}, top1 = {};  // over the images since the last step event; top1 in percent
  double learning_rate = 0;
  double images_per_second = 0;           // all workers together
  Spread data_wait = {}, peer_wait = {};  // shares of the time, 0..1
  std::optional<double> bytes = {};       // bytes sent so far, mean over the workers
  std::optional<Scaling> scaling = {};
  std::optional<int64_t> workers = {};  // that took the step, where their number may change
};
struct EpochEvent {  // the training set as seen during the epoch
  int64_t step = 0;
  int64_t epoch = 0;  // epochs finished
  double seconds = 0;
  Spread loss, top1;
  double images_per_second = 0;
  int64_t unreadable = 0;
  std::optional<double> bytes;  // as of a step
};
struct EvalEvent {  // the test set
  int64_t step = 0;
  double epoch = 0;
  double seconds = 0;
  double loss = 0, top1 = 0;          // the evaluated (consensus) model's; in percent
  std::optional<double> top5;         // in percent; none for five classes or fewer
  std::optional<Spread> worker_top1;  // of the workers' own models
  std::optional<double> consensus_distance;
  std::optional<double> bytes;               // as of a step
  std::optional<double> ema_loss, ema_top1;  // of the moving average of the weights
};

struct LostEvent {   // a worker that is lost
  int64_t step = 0;  // worker 0's step when it noticed
  double epoch = 0;
  double seconds = 0;
  int worker = 0, left = 0;  // how many workers are left
  std::string why = "";
};
Json to_json(const LostEvent&);

struct SharesEvent {  // of the workers in the global batch, where they are not as even as can be
  int64_t step = 0;   // from which on they are these
  double epoch = 0;
  double seconds = 0;
  std::vector<int64_t> shares = {};
  std::vector<double> speeds = {};  // images a second, by which they were dealt; empty: they were given
  std::string why = "";
};

struct ChangeEvent {  // of the membership
  int64_t step = 0;   // from which the new members go on
  double epoch = 0;
  double seconds = 0;                  // when they had completed their first step
  int number = 1;                      // of the membership's epoch that begins
  int workers = 0, joined = 0;         // how many there are now; how many of them are new
  std::vector<std::string> lost = {};  // "worker 2: its process has ended", by their ranks before
  // Seconds from the last sign of life of a lost member until the first of the others knew of its loss; the
  // longest of all the lost. Nothing if none was lost, or if nobody who is left had been connected with them.
  std::optional<double> detected = {};
  // Since worker 0 of the new members noticed: until all had agreed, and until their first step was complete.
  double agreed = 0, healed = 0;
  int64_t steps_redone = 0, images_redealt = 0;  // taken before, and taken back
  double weight_lost = 0;                        // of push-sum: the w of those who are no more
};
Json to_json(const ChangeEvent&);
ChangeEvent change_of(const Json&);  // what to_json() made

// Writes DIR/metrics.jsonl. Each event is one write, so a reader never sees half a line for long; numbers
// that JSON cannot hold (NaN, infinity) become null. Not thread-safe. Throws BadFile.
class MetricsLog {
 public:
  // resumed_step < 0 starts a new file; otherwise later events than that step and a torn last line are
  // dropped, and the rest is kept.
  explicit MetricsLog(const std::string& dir, int64_t resumed_step = -1);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  double seconds() const { return seconds_; }  // the time of the last kept event, to which later events add

  void write(const RunEvent&);
  void write(const StepEvent&);
  void write(const EpochEvent&);
  void write(const EvalEvent&);
  void write(const LostEvent&);
  void write(const ChangeEvent&);
  void write(const SharesEvent&);

 private:
  void append(const Json&);
  std::string path_;
  int fd_ = -1;
  double seconds_ = 0;
};

// The groups of figures in a summary.
struct ModelFigures {  // the model at the end
  int64_t parameters = 0;
  std::optional<double> top1, top5, loss, best_top1;   // of evaluations, the last and the best; in percent
  Json best = Json::object();                          // to_json(Best) of the model in model_best.safetensors
  std::optional<double> ema_top1, ema_top5, ema_loss;  // of the moving average of the weights
  std::string hash,
      ema_hash;  // parameter_hash of the evaluated model, and of the average; empty if there is none
  std::vector<std::string> worker_hashes;
  std::optional<double> consensus_distance;
};
struct CostFigures {
  double images_per_second = 0;  // training time only, all workers
  double seconds = 0;            // wall clock, including earlier runs of the same training
  std::vector<std::pair<std::string, double>> seconds_by_work;  // "data", "forward", ..., of worker 0
  std::vector<std::vector<double>> seconds_by_worker;  // the same for each worker; empty if there is one
  std::optional<double> bytes_per_step;                // sent by a worker, mean over the workers
  std::optional<double> hidden_share;
  std::optional<Predicted> predicted;
};
// Lines of speed, bytes and, if there was one, the prediction beside them.
std::string in_words(const CostFigures&, double training_seconds);

struct DataFigures {
  // The images of each class in each worker's shard; empty with --split iid.
  std::vector<std::vector<int64_t>> labels;
  std::vector<std::string> classes;                              // their names
  int64_t unreadable = 0;                                        // image files left out, each counted once
  std::vector<std::string> unreadable_names;                     // the first of them
  Json odd_files = Json::object();                               // OddFiles::to_json()
  std::vector<std::pair<std::string, double>> seconds_by_stage;  // stages of loading: "read", "decode", ...
};
struct WorkerFigures {
  int count = 1;
  int64_t global_batch = 0;           // images of a step over all workers
  std::vector<LostEvent> lost;        // the lost workers; lists by worker are for the others, in order
  std::vector<ChangeEvent> changes;   // of the membership
  std::optional<SharesEvent> shares;  // the latest
};

// What summary.json says (docs/metrics.md).
struct Summary {
  std::string version = SKEIN_VERSION;
  int64_t steps = 0;
  double epochs = 0;
  bool interrupted = false;
  ModelFigures model;
  CostFigures costs;
  DataFigures data;
  WorkerFigures workers;
  std::optional<Scaling> scaling;
  Json environment = Json::object();
  Json config = Json::object();
  Json to_json() const;
};
// Writes DIR/summary.json atomically.
void write_summary(const std::string& dir, const Summary&);

// Processor, cores, system, compiler, library versions: what a number in a report depends on.
Json describe_environment();

}  // namespace skein::apps
