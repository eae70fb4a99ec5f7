// Runs as report and comparison read them, made without training.
#pragma once
#include <nlohmann/json.hpp>

#include "apps/report/run_figures.h"

namespace skein::apps {

inline Json config_of(const std::string& algorithm, int seed = 1) {
  return {{"model", "mlp"}, {"data", "mnist"}, {"algorithm", algorithm}, {"workers", 4},
          {"lr", 0.5},      {"seed", seed},    {"nesterov", true},       {"output", "somewhere"}};
}

// A run evaluated at steps 100, 200 and 300, ten seconds and 8 MB apart, with the given accuracies.
inline RunFiles run_of(const std::string& directory, const Json& config,
                       const std::vector<double>& top1 = {50, 70, 80}) {
  std::string lines = Json{{"event", "run"}, {"step", 0}, {"workers", 4}, {"config", config}}.dump() + '\n';
  for (size_t i = 0; i < top1.size(); ++i) {
    const int step = 100 * int(i + 1);
    for (const char* kind : {"step", "eval"})
      lines += Json{{"event", kind},
                    {"step", step},
                    {"epoch", i + 1.0},
                    {"seconds", 10.0 * double(i + 1)},
                    {"bytes", 8e6 * (i + 1.0)},
                    {"loss", 1.0},
                    {"loss_min", 0.5},
                    {"loss_max", 2},
                    {"top1", top1[i]}}
                   .dump() +
               '\n';
  }
  RunFiles run = parse_run(lines, "");
  run.directory = directory;
  return run;
}
inline Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

}  // namespace skein::apps
