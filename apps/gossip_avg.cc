// gossip_avg: averages vectors between workers, without a model.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/base/digest.h"
#include "apps/base/printable.h"
#include "apps/base/together.h"
#include "apps/base/writable.h"
#include "apps/gossip/gossip_page.h"
#include "apps/launch/interrupt.h"
#include "apps/launch/refused.h"
#include "apps/model/vectors.h"
#include "comm/communicator/numbers.h"
#include "engine/device/processor.h"
#include "engine/random.h"
#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

// SIGTERM asks only this worker to leave; Ctrl-C asks all to stop.
void catch_signals() {
  catch_interrupts(Termination::kLeaves);
  catch_requeue_signal();
}
comm::Wish wish() {
  return interrupted() ? comm::Wish::kStop : told_to_leave() ? comm::Wish::kLeave : comm::Wish::kGoOn;
}

void print_schedule(const GossipFlags& f) {
  const int workers = planned_workers(f.job);
  const auto graph = comm::make_topology(f.topology, f.graph, workers);
  Json rounds = Json::array();
  for (int64_t q = 0; q < f.rounds; ++q) {
    Json ranks = Json::array();
    for (int r = 0; r < workers; ++r) {
      const comm::Mix m = graph->at(r, q);
      Json one = {
          {"out", Json::array()}, {"in", Json::array()}, {"self", m.self}, {"weights", Json::array()}};
      for (const comm::Edge& e : m.out) one["out"].push_back(e.peer), one["weights"].push_back(e.weight);
      for (const comm::Edge& e : m.in) one["in"].push_back(e.peer);
      ranks.push_back(one);
    }
    rounds.push_back(ranks);
  }
  fmt::print("{}\n", rounds.dump());
}

// Every rank throws if the layouts differ, naming the first file that differs from rank 0's. Collective.
void agree_on_layout(const Member& me, const std::string& path, const std::string& layout) {
  const std::string first = from_rank_zero(me.comm, path + " holds " + layout),
                    like = from_rank_zero(me.comm, layout);
  together(me.comm, [&] {
    if (layout != like)
      throw BadFile("--input: the files differ: " + first + ", but " + path + " holds " + layout);
  });
}

// Loads this rank's numbers; `path` receives the path of their file.
Vectors load(const GossipFlags& f, const Member& me, std::string& path) {
  Vectors v;
  together(me.comm, [&] {
    if (f.input.empty()) {
      const Tensor x({f.size});
      fill_uniform(x, {uint64_t(f.seed), Purpose::kTest, 0, uint32_t(me.rank)}, -1, 1);
      v = plain_vector(x, f.output);
    } else {
      path = vectors_file(input_of(f, me.rank));
      v = read_vectors(path);
      check_numbers(path, v, me.world);
      if (comm::holds_doubles(v.flat) && f.wire != "fp32")
        throw BadOption("--wire " + f.wire + ": " + path +
                        " holds float64, which is sent unchanged; leave --wire out");
    }
    if (!f.output.empty()) {
      check_ending(file_of(f.output, me.rank), v.npy);
      check_writable(file_of(f.output, me.rank));
    }
    if (!f.report.empty() && me.rank == 0) check_writable(f.report);
  });
  if (!f.input.empty()) agree_on_layout(me, path, v.layout());
  return v;
}

// What is averaged: every rank's file and its digest. Collective over all ranks, so it runs before a
// worker can be lost.
Json inputs(const GossipFlags& f, const Member& me, const std::string& path) {
  if (f.output.empty()) return {};
  if (f.input.empty()) return fmt::format("uniform random numbers of seed {}", f.seed);
  std::string digest;
  together(me.comm, [&] { digest = digest_of_file(path); });
  Json all = Json::array();
  for (int r = 0; r < me.world; ++r)
    all.push_back({{"rank", r},
                   {"file", comm::broadcast_text(me.comm, path, r)},
                   {"blake2b", comm::broadcast_text(me.comm, digest, r)}});
  return all;
}

std::string provenance(const GossipFlags& f, const GossipStory& s, const Json& inputs) {
  Json j = {{"made_by", "gossip_avg " SKEIN_VERSION},
            {"algorithm", f.algorithm},
            {"topology", f.topology},
            {"workers", s.workers},
            {"living", s.living},
            {"rounds", s.result->rounds},
            {"error", s.result->error},
            {"inputs", inputs}};
  if (f.algorithm == "allreduce") j.erase("topology");
  if (f.tolerance > 0) j["tolerance"] = f.tolerance;
  if (const double share = relative_tolerance(f, s.doubles); share > 0) j["relative_tolerance"] = share;
  return json_text(j);
}

comm::AveragingOptions averaging_options(const GossipFlags& f, const Tensor& x) {
  comm::AveragingOptions o{
      .algorithm = comm::parse_averaging(f.algorithm), .rounds = f.rounds, .tolerance = f.tolerance};
  o.relative = relative_tolerance(f, comm::holds_doubles(x));
  o.graph = [&](int n, uint32_t epoch) { return graph_over(f, n, epoch); };
  o.wish = wish;
  o.say = [](const std::string& line) { say(stderr, fmt::format("gossip_avg: {}\n", line)); };
  return o;
}

// Every gossip is the identity.
comm::AveragingResult alone(const GossipFlags& f, const Member& me) {
  comm::AveragingResult r;
  r.rounds = f.rounds;
  r.epochs.push_back({.members = {0}, .begin = {1, 0}, .end = {1, 0}});
  r.living = me.comm.group({0});
  return r;
}

// What a worker takes along from one epoch of the membership into the next.
struct Work {
  Work(const GossipFlags& f, const Member& me)
      : rank(me.rank), world(me.world), ways(me.ways), v(load(f, me, path)), sources(inputs(f, me, path)) {
    if (world > 1) run.emplace(rank, v.flat, averaging_options(f, v.flat));
  }
  const int rank, world;  // in the first epoch
  const std::string ways;
  std::string path;
  Vectors v;
  const Json sources;
  std::optional<comm::AveragingRun> run;
  std::optional<comm::AveragingResult> result;
};

// The same on every living rank, except for what only the first of them reports.
GossipStory story(const GossipFlags& f, const Member& me, const Work& w) {
  const comm::AveragingResult& r = *w.result;
  GossipStory s{.workers = w.world,
                .elements = w.v.flat.size(),
                .doubles = comm::holds_doubles(w.v.flat),
                .result = &r,
                .weights = {},
                .living = {},
                .epochs = {},
                .ways = w.ways,
                .refused = {}};
  s.living = r.epochs.back().members;
  s.epochs = {};
  s.refused = refused_by_all(me.refusals, *r.living);
  for (const auto& one : comm::gather_numbers(*r.living, {r.weight, double(r.skipped)}))
    s.weights.push_back(one[0]), s.skipped += int64_t(one[1]);
  s.bytes_sent = r.bytes_sent;
  if (w.rank == s.living[0]) s.epochs = epoch_stories(f, r, s.doubles);
  return s;
}

// `kept`: null in the first epoch.
int work(const GossipFlags& f, const Member& me, std::unique_ptr<Work>& kept) {
  if (!kept) {
    outlive_readers();
    catch_signals();
    kept = std::make_unique<Work>(f, me);
    if (me.before_end) me.before_end([&kept] { kept.reset(); });
  }
  Work& w = *kept;
  if (w.run && !w.run->epoch(me.comm, me.council, me.close_past)) return kNextEpoch;
  w.result = w.run ? w.run->finish() : alone(f, me);
  if (w.result->left) return 0;
  const GossipStory s = story(f, me, w);
  const bool tells = w.rank == s.living[0];
  together(*w.result->living, [&] {
    if (!f.output.empty()) write_vectors(file_of(f.output, w.rank), w.v, provenance(f, s, w.sources));
    if (!f.report.empty() && tells) write_file(f.report, gossip_page(f, s));
  });
  if (me.council) me.council->end_run({.step = s.result->rounds});
  if (tells) say(stdout, f.json ? json_text(in_json(f, s)) + '\n' : in_words(f, s));
  return interrupted() ? kExitInterrupted : 0;
}

int test_links(const GossipFlags& f, const Member& me) {
  const auto all = comm::test_links(me.comm, {.repeats = f.repeats});
  if (me.rank == 0)
    fmt::print("{}",
               f.json ? in_json(all, me.world, me.ways).dump() + '\n' : in_words(all, me.world, me.ways));
  return 0;
}

int run(int argc, char** argv) {
  chosen_isa();  // A wrong SKEIN_CPU is said here, before anything starts.
  const std::optional<GossipFlags> given = read_gossip_flags(argc, argv);
  if (!given) return 0;
  const GossipFlags& f = *given;
  if (f.print_schedule) return print_schedule(f), 0;
  std::unique_ptr<Work> kept;  // of a worker that is a process, which alone has a second epoch
  return run_job(f.job, argv, [&](const Member& me) {
    if (f.link_test) return test_links(f, me);
    std::unique_ptr<Work> own;
    return work(f, me, me.council ? kept : own);
  });
}

}  // namespace
}  // namespace skein::apps

int main(int argc, char** argv) {
  using namespace skein::apps;
  return status_of("gossip_avg", [&] { return run(argc, argv); });
}
