// The command line of train_imagenet.
#pragma once
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
  std::string checkpoint;            // of the run to be resumed; empty: none, or not yet
  // The directory of the run that --resume continues, though it may have no checkpoint yet; empty: a new run.
  std::string run;
  bool newest = false;           // of `run`, rather than the one that was named: look again when it is held
  bool resume_if_there = false;  // --resume auto: `checkpoint` is what this process sees of --output
  // Free flags that differ from the resumed run's, as "lr 0.1 -> 0.05".
  std::vector<std::string> changes;
  Config config;
  Prediction prediction;  // kPredict
  bool json = false;      // with --eval-only: what it finds is printed as JSON
};

// The command line over the --config file over the --recipe over the configuration of a resumed run over the
// defaults. Throws BadOption naming the flag (or file, line and key), what is allowed and the nearest valid
// name, or BadFile.
Command parse_command_line(int argc, const char* const* argv, const Flags& = flags());

}  // namespace skein::apps
