// The rows of strategies.def without a server, each with the flags it is tried with.
#pragma once
#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/peek.h"
#include "tests/support/trainee.h"

namespace skein::trainee {

// A row, and the flags it is tried with; gossip also with two in-peers.
struct Case {
  const optim::StrategyRow* row;
  std::string flags;
  optim::Options options;
  bool coded() const { return flags.find("--wire") != std::string::npos; }
  bool waits() const {
    return std::string(row->name) != "ad-psgd";
  }  // for other workers, somewhere in a step
};

// Flags of rows whose defaults would hardly meet in so few steps, or whose momentum would still swing.
inline constexpr std::pair<const char*, const char*> kTried[] = {
    {"local-sgd", "--tau 3"},
    {"post-local", "--tau 3 --switch-step 2"},
    {"post-local", "--tau 2 --switch-step 3 --hierarchy 2"},
    {"qsr", "--tau 2 --qsr-c 0.17 --tau-max 9"},
    {"slowmo", "--tau 2"},
    {"slowmo", "--tau 3 --beta 0.3 --reset-inner on"},
    {"bmuf", "--tau 2 --beta 0.5"},
    {"bmuf", "--tau 2 --beta 0.5 --outer-nesterov on"},
    {"overlap-local-sgd", "--tau 2"},
    {"overlap-local-sgd", "--tau 3 --bn-policy mix"},
    {"cocod", "--tau 2"},
    {"cocod", "--tau 3 --bn-policy mix"},
    {"easgd", "--tau 2"},
    {"easgd", "--tau 3 --bn-policy mix"},
    {"eamsgd", "--tau 2"},
    {"diloco", "--tau 2 --outer-momentum 0.5"},
    {"eager-diloco", "--tau 2 --outer-momentum 0.3"},
    {"palsgd", "--tau 2 --pull-probability 0.3 --outer-momentum 0.5"},
    {"sparta", "--density 0.3"},
    {"sparta", "--density 0.3 --bn-policy mix"},
    {"sparseloco", "--tau 2 --density 0.3"},
    {"sparseloco", "--tau 2 --density 0.5 --outer-lr 0.4 --sparse-mean senders --bn-policy mix"},
    {"noloco", "--tau 1"},
    {"dppf", "--tau 2 --push 0.01"},
    {"d2", "--topology complete"},
    {"qg-dsgdm", "--qg-momentum 0.5"},
    {"streaming-diloco", "--tau 3 --fragments 2 --outer-momentum 0.5"},
    {"streaming-diloco", "--tau 2 --fragments 3 --delay 1 --outer-momentum 0.5 --bn-policy mix"},
    {"streaming-diloco", "--tau 3 --fragments 2 --delay 2 --outer-momentum 0.5 --mix 0.5"},
};

inline std::vector<Case> cases(int world) {
  std::vector<Case> all;
  for (const optim::StrategyRow& row : optim::strategies()) {
    const std::string name = row.name;
    if (world > 1 && name == "sgd") continue;  // one worker's
    if (row.center()) continue;                // a server, which has tests of its own
    if (name == "lsgd") {                      // leaders draw the mean to themselves
      const std::string groups = std::to_string(std::min(world, 2));
      all.push_back({&row, "", options({{"groups", groups}, {"c-local", "0.003"}, {"c-global", "0.003"}})});
      continue;
    }
    const size_t before = all.size();
    for (const auto& [tried, flags] : kTried)
      if (name == tried) all.push_back({&row, text(' ', flags), flags_of(flags)});
    if (all.size() == before) all.push_back({&row, "", {}});
    if (name == "allreduce") all.push_back({&row, " --hierarchy 3", options({{"hierarchy", "3"}})});
    if (name == "sgp" && world > 2) all.push_back({&row, " --peers 2", options({{"peers", "2"}})});
    if (name == "sgp" || name == "d-psgd" || name == "osgp" || name == "ad-psgd")
      all.push_back({&row, " --bn-policy mix", options({{"bn-policy", "mix"}})});
    for (const char* wire : {"int8", "topk:0.3"})
      if (name == "d2" && wire != std::string("int8")) {
        continue;  // refused
      } else if (world > 1 && optim::strategy_row(name).codec) {
        all.push_back(all[before]);
        all.back().flags += text(" --wire ", wire), all.back().options.set("wire", wire);
      }
  }
  return all;
}

// The models at the start and at the end of a run of `steps` steps. Where workers are asynchronous, they do
// as much as the machine lets them: there all go on until each has done so many steps, and each that asks for
// exchanges has made so many. `at_end` sees each trainee with its rank, on a thread of that rank's.
using Models = std::vector<std::vector<float>>;
inline std::pair<Models, Models> begin_and_end(
    const Problem& p, const Case& c, int n, int64_t steps,
    const std::function<void(Trainee&, size_t)>& at_end = [](Trainee&, size_t) {}) {
  Models begin(static_cast<size_t>(n)), end(static_cast<size_t>(n));
  std::atomic<int> behind{n};
  in_local_world(n, [&](comm::Communicator& comm) {
    Trainee t(p, c.row->name, c.options, comm);
    const size_t r = size_t(comm.rank());
    begin[r] = values(t.x);
    const auto enough = [&](int64_t done) {
      return done >= steps && (c.waits() || r % 2 == 0 || Peek(*t.strategy).numbers.at("exchanges") >= steps);
    };
    bool counted = false;
    for (int64_t k = 0; c.waits() ? k < steps : behind > 0; ++k) {
      t.step(k);
      if (!counted && enough(k + 1)) counted = true, --behind;
    }
    t.strategy->settle(t.worker);
    end[r] = values(t.x);
    at_end(t, r);
  });
  return {begin, end};
}

// A second run that does the same again; an asynchronous row's by a recording of the first.
struct Again {
  explicit Again(const Case& c) : first(c.options), second(c.options) {
    if (!c.row->asynchronous()) return;
    first.set("record", folder / "order"), second.set("replay", folder / "order");
  }
  testing::ScratchDir folder;
  optim::Options first, second;
};

}  // namespace skein::trainee
