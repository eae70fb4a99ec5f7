// The command line of train_imagenet.
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
    kList,
    kPrint,
    kHelp,
    kVersion
  } action = kTrain;
  std::string list;                  // kList: algorithms, models, topologies, data, recipes; empty: all
  std::string help;                  // kHelp: the text
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
};

// The command line over the --config file over the --recipe over the configuration of a resumed run over the
// defaults. Throws BadOption naming the flag (or file, line and key), what is allowed and the nearest valid
// name, or BadFile.
// `ask` returns the configuration of the job that --join names, as TOML: it takes the place of a resumed run's, and
// BadOption names what contradicts it. Without it the job is not asked.
using AskJob = std::function<std::string(const std::string& join, double deadline)>;
Command parse_command_line(int argc, const char* const* argv, const Flags& = flags(), const AskJob& ask = {});

}  // namespace skein::apps
