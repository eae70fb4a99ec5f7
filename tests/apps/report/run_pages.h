// A run's files as a trainer would have written them, and what its page holds.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/report/metrics.h"
#include "engine/random.h"
#include "tests/support/files.h"

namespace skein::apps {

inline constexpr int64_t kPerEpoch = 235, kEpochs = 12;

inline StepEvent step_of_run(int64_t k, int workers) {
  const Draw draw{.seed = 3, .purpose = Purpose::kTest, .step = uint64_t(k)};
  const double t = double(k) / double(kPerEpoch * kEpochs), noise = draw.unit(0) - 0.5;
  StepEvent e;
  e.step = k, e.epoch = double(k) / kPerEpoch, e.seconds = 14 + double(k) * 0.055;
  const double loss = 0.18 + 2.1 * std::exp(-14 * t) + 0.15 * std::exp(-3 * t) + 0.12 * noise * (1.2 - t);
  e.loss = workers > 1 ? Spread(loss, loss - 0.05, loss + 0.06) : Spread(loss);
  e.top1 = 100 - 31 * loss;
  e.learning_rate = k < 235 ? 0.4 * double(k + 1) / 235 : 0.2 * (1 + std::cos(3.14159 * (t - 0.083) / 0.917));
  e.images_per_second = 9300 + 500 * (draw.unit(1) - 0.5) - (draw.unit(2) > 0.97 ? 1500 : 0);
  e.data_wait = 0.02 + 0.01 * draw.unit(3), e.peer_wait = 0.05 + 0.04 * draw.unit(4);
  if (workers > 1) e.bytes = 1e6 * double(k);
  return e;
}

inline constexpr const char* kTimeline =
    R"({"steps":[7,7],"seconds":0.05,"tracks":["compute","transfer","waiting"],
        "names":["forward","all_reduce"],
        "workers":[{"rank":0,"spans":[[0,0,0,0.03,-1,-1,-1],[1,1,0.01,0.035,7,1,1000],
                                       [2,1,0.03,0.015,7,1,-1]]},
                   {"rank":1,"spans":[[0,0,0,0.05,-1,-1,-1]]}]})";

// A run as the trainer would have written it.
inline void write_run(const std::string& dir, int workers) {
  const Json config = {{"model", "resnet20"},
                       {"data", "fashion-mnist"},
                       {"algorithm", workers > 1 ? "sgp" : "sgd"},
                       {"workers", workers},
                       {"batch-size", 256 / workers},
                       {"precision", "fp32"},
                       {"epochs", kEpochs},
                       {"lr", 0.4},
                       {"lr-schedule", "cosine"},
                       {"momentum", 0.9},
                       {"weight-decay", 0.0005},
                       {"seed", 1}};
  MetricsLog log(dir);
  log.write(RunEvent{.config = config,
                     .environment = describe_environment(),
                     .steps_per_epoch = kPerEpoch,
                     .total_steps = kPerEpoch * kEpochs,
                     .workers = workers});
  for (int64_t k = 5; k <= kPerEpoch * kEpochs; k += 5) {
    log.write(step_of_run(k, workers));
    if (k % kPerEpoch != 0) continue;
    const StepEvent s = step_of_run(k, workers);
    const double t = s.epoch / kEpochs;
    EvalEvent e;
    e.step = k, e.epoch = s.epoch, e.seconds = s.seconds + 1;
    e.loss = 0.24 + 0.5 * std::exp(-6 * t), e.top1 = 91.6 - 14 * std::exp(-4 * t), e.top5 = 99.8;
    if (workers > 1) e.worker_top1 = Spread(e.top1 - 0.7, e.top1 - 1.2, e.top1 - 0.3);
    if (workers > 1) e.consensus_distance = 0.02 * std::exp(-3 * t), e.bytes = s.bytes;
    log.write(e);
    if (k == 6 * kPerEpoch)
      log.write(RunEvent{.step = k,
                         .seconds = e.seconds,
                         .config = config,
                         .steps_per_epoch = kPerEpoch,
                         .workers = workers});
  }
  Summary s;
  s.steps = kPerEpoch * kEpochs, s.epochs = kEpochs, s.model.top1 = 91.34, s.model.top5 = 99.82,
  s.model.loss = 0.2413, s.model.best_top1 = 91.47;
  s.costs.images_per_second = 9287, s.costs.seconds = 171.3, s.workers.count = workers,
  s.model.parameters = 269434;
  s.costs.seconds_by_work = {
      {"data", 3.2}, {"forward", 50}, {"backward", 92.1}, {"evaluate", 12.4}, {"checkpoint", 1.9}};
  if (workers > 1) {
    s.costs.seconds_by_work.insert(s.costs.seconds_by_work.begin() + 1, {"peers", 9.4});
    s.costs.seconds_by_worker.assign(size_t(workers), {3, 9, 50, 92, 12, 2});
    testing::spill(dir + "/timeline.json", kTimeline);
    s.costs.hidden_share = 0.873, s.costs.bytes_per_step = 1.0777e6;
    s.data.classes = {"geese", "swans", "</script>"};
    s.data.labels = {{10, 0, 90}, {50, 50, 0}, {0, 1, 0}, {7, 8, 9}};
  }
  s.model.hash = "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8";
  s.config = config, s.environment = describe_environment();
  write_summary(dir, s);
}

inline Json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(open) + open.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace skein::apps
