// The rows of optim/strategies.def that can be elastic, as tests of elastic trainings play them, and
// what they promise.
#pragma once
#include <unistd.h>

#include "apps/launch/launch.h"
#include "engine/words/file.h"
#include "tests/support/elastic/job.h"

namespace skein::apps {

inline constexpr int64_t kElasticTau = 3;
inline constexpr double kElasticSilence = 1;  // seconds until a worker that is not heard of is given up

// Files in memory if the host has a place for that: many runs would wait for the disk longer
// than they compute.
struct InMemory : Workplace {
  InMemory()
      : Workplace(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path()) {}
};

// A case is a row, as "gem", or one with a server of its own, "gem dedicated".
inline std::string row_of(const std::string& which) { return which.substr(0, which.find(' ')); }
inline bool reads(const std::string& which, const std::string& flag) {
  return text(' ', optim::strategy_row(row_of(which)).flags, ' ').find(' ' + flag + ' ') != std::string::npos;
}

// 52 images in steps of 10 to 18, which is enough for as many workers as there may be.
inline Config elastic_config(const std::string& which, int workers) {
  Config c = small_config();
  const std::string row = row_of(which);
  if (row != which) c.of_algorithm["servers"] = "dedicated";
  if (row == "lsgd") {
    c.of_algorithm["groups"] = text(std::min(2, workers));
    c.of_algorithm["prox-local"] = "0.1";
  }
  c.data = "synthetic:8x8x1,classes=4,train=52,test=8";
  c.epochs = 4;
  c.workers = workers;
  c.checkpoint_every = "2";
  c.batch_size = std::max(2, 12 / workers);
  c.algorithm = row;
  if (reads(row, "tau")) c.of_algorithm["tau"] = text(kElasticTau);
  if (row == "streaming-diloco") c.of_algorithm["delay"] = "1";
  if (row == "qsr") c.of_algorithm["qsr-c"] = "0.1";
  if (row == "post-local") c.of_algorithm["switch-step"] = "7";
  return c;
}

inline std::vector<std::string> elastic_rows() {
  std::vector<std::string> all;
  for (const optim::StrategyRow& row : optim::strategies())
    if (std::string(row.name) != "sgd" && job_options(elastic_config(row.name, 4)).elastic)
      all.push_back(row.name);
  for (const char* row : {"gem", "easgd-async", "lsgd"}) all.push_back(text(row, " dedicated"));
  return all;
}

// Steps take up to 0.1 s, messages 2 to 4 ms, and a worker that is not heard of for a second is given up.
inline comm::sim::WorldOptions elastic_world(uint64_t seed, bool keeps_log = false) {
  return {.weather = {.seed = seed, .latency = 0.002, .jitter = 0.002, .bandwidth = 1e8},
          .silence = kElasticSilence,
          .time_up = 3600,
          .keeps_log = keeps_log};
}

// The periods of rows whose workers meet every kElasticTau steps end with such a meeting, or with the run.
inline void expect_ends_at_meetings(const ElasticRecord& r) {
  for (const auto& [epoch, p] : r.periods)
    EXPECT_TRUE(p.to == r.last || p.to < 0 || p.to % kElasticTau == 0)
        << "epoch " << epoch << " ends with " << p.to;
}

inline void expect_told_change(const comm::View& before, const comm::View& now, const Json& told) {
  std::set<std::string> lost, who;
  for (size_t rank = 0; rank < before.members.size(); ++rank)
    if (!now.has(before.members[rank].id)) lost.insert(name_in(before, int(rank)));
  for (const std::string one : told.at("who")) who.insert(one.substr(0, one.find(':')));
  EXPECT_EQ(who, lost) << told.dump();
  EXPECT_EQ(told.at("who").size(), lost.size()) << told.dump();
  const auto is_new = [&](const comm::View::Member& m) { return !before.has(m.id); };
  EXPECT_EQ(told.at("joined"), std::count_if(now.members.begin(), now.members.end(), is_new)) << told.dump();
}

// What is told of the changes of the membership, also where members of an epoch were lost before it came
// about: who of the epoch before is no more, and how many are new.
inline void expect_told_changes(const std::string& directory, const ElasticRecord& r) {
  const Json summary = Json::parse(read_file(directory + "/summary.json"));
  if (!summary.contains("recoveries")) return;
  const comm::View* before = nullptr;
  for (const Json& e : summary.at("recoveries")) {
    const uint32_t epoch = e.at("membership");
    const comm::View& now = r.views.at(epoch);
    EXPECT_EQ(e.at("workers"), r.periods.at(epoch).workers) << e.dump();
    if (before) expect_told_change(*before, now, e);
    before = &now;
  }
}

// The models of all workers are the same bits after a step or a meeting, to which the others go back when one
// is lost. In the other rows each worker has a model of its own at all times.
inline bool goes_on_with_one_model(const std::string& row) {
  static const std::set<std::string> kRows = {"allreduce", "local-sgd", "post-local", "qsr",
                                              "slowmo",    "bmuf",      "diloco",     "sparseloco"};
  return kRows.contains(row);
}

// How many of a worker's steps the others may not know of: a step counts for good when a later one has sent
// something, and others have heard of it. In ad-psgd half of the workers send only when they are asked, in
// lsgd when their leases are used up. In osgp a worker that is cut off takes one step more than in sgp,
// because it waits for its peers a step later. What worker 0 gives to a center that it keeps itself is known
// when another worker has had the center since.
inline int64_t steps_untold(const std::string& row, int64_t longest_alone) {
  if (row_of(row) == "lsgd") return 5;
  if (row == "ad-psgd") return 8;
  if (row == "osgp") return 3;
  const int64_t between = reads(row, "tau") ? kElasticTau : 1;
  return 1 + between * (optim::strategy_row(row_of(row)).center() ? 1 + longest_alone : 1);
}

inline void expect_what_is_promised(const std::string& row, const ElasticRecord& r) {
  expect_one_end(r);
  if (optim::strategy_row(row_of(row)).asynchronous()) {
    const int64_t doubled = expect_no_sample_lost(r), lost = r.deaths + r.left;
    if (r.given_up > 0) return;  // steps of those that were cut off with the center do not count
    EXPECT_LE(doubled, lost * steps_untold(row, r.longest_alone) * r.largest_share())
        << r.deaths << " deaths, " << r.left << " left";
    return;
  }
  expect_each_sample_once(r);
  expect_whole_weight(r);
  if (goes_on_with_one_model(row)) expect_one_model(r);
  if (reads(row, "tau") && !reads(row, "switch-step!") && !reads(row, "qsr-c!")) expect_ends_at_meetings(r);
}

}  // namespace skein::apps
