// Command: what a command line asks for.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/config/config.h"

namespace skein::apps {

struct Command {
  enum Action : uint8_t {
    kTrain,
    kPredict,
    kCompare,
    kDoctor,
    kPlan,
    kList,
    kPrint,
    kHelp,
    kVersion
  } action = kTrain;
  std::string list;  // kList: algorithms, optimizers, models, topologies, data, recipes; empty: all
  std::string help;  // kHelp: the text
  std::vector<std::string> compare;  // kCompare: directories of runs; the page goes to config.output
  std::string checkpoint;            // of the run to resume; empty if there is none (yet)
  // The directory of the run that --resume continues, though it may have no checkpoint yet; empty: a new run.
  std::string run;
  // Resume the newest checkpoint of `run`, not a named one: look again once it is locked.
  bool newest = false;
  bool resume_if_there = false;  // --resume auto: `checkpoint` is what this process sees in --output
  std::string job;               // that --join enters and whose configuration this is; empty: none was asked
  // Free flags that differ from the resumed run's, as "lr 0.1 -> 0.05".
  std::vector<std::string> changes;
  Config config;
  Prediction prediction;  // kPredict
  bool json = false;      // with --eval-only: print the result as JSON
  std::string html;       // kPlan: the page to write; empty: none
};

// Returns the configuration of the job that --join names, as TOML.
using AskJob = std::function<std::string(const std::string& join, double deadline)>;

}  // namespace skein::apps
