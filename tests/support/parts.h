// A run and its parts without the loop, for tests of one part.
#pragma once
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "apps/train/record.h"
#include "apps/train/rollback.h"
#include "apps/train/scoring.h"
#include "tests/support/program.h"
#include "tests/support/world.h"

namespace skein::apps {

using testing_programs::Workplace;

// 52 images of four classes in batches of 8.
inline Config small_config(const std::string& model = "mlp") {
  Config c;
  c.data = "synthetic:16x16x1,classes=4,train=52,test=20";
  c.model = model;
  c.batch_size = 8;
  c.epochs = 2;
  c.threads = c.data_threads = 1;
  c.tensorboard = false;
  return c;
}

inline Place place_of(const comm::Communicator& c, comm::Council* council = nullptr) {
  Place p;
  p.rank = c.rank(), p.world = c.size(), p.council = council;
  return p;
}

// One worker's run, on a console that the test reads. No data are opened: steps have no images.
struct RunOnPaper {
  RunOnPaper(comm::Communicator& c, const Config& config, bool survives = false)
      : RunOnPaper(c, config, setup_of(c), ".", survives) {}
  RunOnPaper(comm::Communicator& c, const Config& config, Setup setup, const std::string& directory,
             bool survives)
      : survivors(c, survives), run(config, std::move(setup), directory, progress, survivors) {}

  std::string said() {
    std::rewind(console.get());
    std::string all;
    for (int ch; (ch = std::fgetc(console.get())) != EOF;) all += char(ch);
    return all;
  }

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> console{std::tmpfile(), std::fclose};
  Progress progress{console.get()};
  Survivors survivors;
  Run run;

 private:
  static Setup setup_of(const comm::Communicator& c) {
    Setup s;
    s.place = place_of(c);
    s.alone = c.size() == 1;
    s.steps_per_epoch = 10, s.total_steps = 1000000;
    return s;
  }
};

// A complete worker, whose steps a test takes.
struct Parts : RunOnPaper {
  Parts(comm::Communicator& c, const Config& config, const std::string& directory, bool survives = false,
        comm::Council* council = nullptr)
      : RunOnPaper(c, config, open_setup(config, place_of(c, council)), directory, survives) {
    std::filesystem::create_directories(directory);
    learning.start();
    if (run.first()) record.open(false), scoring.open("");
    record.begin();
    traces.start();
    batches.open();
  }
  void step() {
    learning.before_step();
    rollback.step([this] { learning.strategy->iterate(*learning.worker, run.k); });
    ++run.k;
  }
  void visit(Archive& a) { learning.visit(a), record.visit(a), scoring.visit(a), batches.visit(a); }

  Traces traces{run};
  Batches batches{run};
  Learning learning{run, batches, traces};
  Record record{run, batches, learning};
  Scoring scoring{run, traces, learning};
  Saving saving{run, batches, learning.flat, [this](Archive& a) { visit(a); }};
  Rollback rollback{run, record.workers(), saving, traces, learning, [this](Archive& a) { visit(a); }};
};

// The lines of metrics.jsonl that are events of this kind.
inline std::vector<Json> events(const std::string& directory, const std::string& kind) {
  std::vector<Json> all;
  std::ifstream in(directory + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);)
    if (Json e = Json::parse(line); e["event"] == kind) all.push_back(e);
  return all;
}

}  // namespace skein::apps
