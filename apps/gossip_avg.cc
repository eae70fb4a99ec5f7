// gossip_avg: averages vectors between workers, without a model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/job.h"
#include "apps/together.h"
#include "apps/vectors.h"
#include "comm/averaging.h"
#include "engine/random.h"

namespace skein::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kExitRuntime = 1, kExitUsage = 2;

struct Flags {
  JobOptions job;
  std::string input, output, topology, algorithm = "push-sum";
  comm::TopologyOptions graph;
  int64_t size = 0, rounds = 0, seed = 1;
  double tolerance = 0;
  bool json = false, print_schedule = false;
};

void declare(CLI::App& app, Flags& f) {
  app.add_option("--workers", f.job.workers, "number of workers, started here as processes");
  app.add_option("--input", f.input, "PATTERN: one .npy or .safetensors per worker, {rank} in the name");
  app.add_option("--size", f.size, "average random vectors of so many numbers instead");
  app.add_option("--topology", f.topology, "who speaks with whom; see train_imagenet --list topologies");
  app.add_option("--peers", f.graph.peers, "per gossip");
  app.add_option("--base", f.graph.base, "most peers per gossip in topology base");
  app.add_option("--algorithm", f.algorithm, "push-sum, pairwise or allreduce");
  app.add_option("--rounds", f.rounds, "exactly so many gossips");
  app.add_option("--tolerance", f.tolerance, "until no number is further from the mean than this");
  app.add_option("--output", f.output, "PATTERN: where each worker writes its result, {rank} in the name");
  app.add_option("--seed", f.seed, "of random vectors and random graphs");
  app.add_option("--transport", f.job.transport, "auto, local, shared or ucx");
  app.add_option("--deadline", f.job.deadline, "seconds that any single wait may take");
  app.add_flag("--json", f.json, "the result as JSON");
  app.add_flag("--print-schedule", f.print_schedule, "only print the graph, round by round");
}

[[noreturn]] void refuse(const std::string& why) { throw BadOption(why); }

void check_pattern(const char* flag, const std::string& pattern, int workers) {
  if (!pattern.empty() && workers > 1 && pattern.find("{rank}") == std::string::npos)
    refuse(text(flag, " ", pattern, ": {rank} must stand in the name, or ", workers,
                " workers would share one file"));
}

// All that can be refused before any worker starts.
void check(const CLI::App& app, Flags& f) {
  const Seat seat = seat_from_environment();
  const int given = int(app.count("--workers"));
  if (given && f.job.workers < 1) refuse(text("--workers ", f.job.workers, ": at least 1 is needed"));
  if (!given && !seat.told) refuse("--workers is needed: how many workers average");
  const int workers = seat.told ? seat.world : f.job.workers;
  if (app.count("--peers") && f.graph.peers < 1)
    refuse(text("--peers ", f.graph.peers, ": at least 1 is needed"));
  if (app.count("--rounds") && f.rounds < 1) refuse(text("--rounds ", f.rounds, ": at least 1 is needed"));
  if (app.count("--tolerance") && !(f.tolerance > 0))
    refuse(text("--tolerance ", f.tolerance, ": must be above 0"));
  if (f.rounds && f.tolerance > 0) refuse("--rounds and --tolerance: give one of them");
  const comm::Averaging algorithm = comm::parse_averaging(f.algorithm);
  if (f.topology.empty())
    f.topology = algorithm != comm::Averaging::kPairwise ? "exponential"
                 : workers % 2 == 0                      ? "bipartite-exponential"
                                                         : "random";
  f.graph.seed = uint64_t(f.seed);
  comm::make_topology(f.topology, f.graph, workers);
  if (f.print_schedule) {
    if (!f.rounds) refuse("--print-schedule needs --rounds");
    return;
  }
  if (f.input.empty() == (app.count("--size") == 0)) refuse("give --input PATTERN or --size N, one of them");
  if (app.count("--size") && f.size < 1) refuse(text("--size ", f.size, ": at least 1 is needed"));
  if (!f.rounds && f.tolerance == 0) f.algorithm == "allreduce" ? f.rounds = 1 : f.tolerance = 1e-5;
  check_pattern("--input", f.input, workers);
  check_pattern("--output", f.output, workers);
}

void print_schedule(const Flags& f) {
  const auto graph = comm::make_topology(f.topology, f.graph, f.job.workers);
  Json rounds = Json::array();
  for (int64_t q = 0; q < f.rounds; ++q) {
    Json ranks = Json::array();
    for (int r = 0; r < f.job.workers; ++r) {
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

std::string file_of(std::string pattern, int rank) {
  for (size_t at; (at = pattern.find("{rank}")) != std::string::npos;)
    pattern.replace(at, 6, std::to_string(rank));
  return pattern;
}

// Every rank throws if the layouts differ, naming the first file that is unlike rank 0's. Collective.
void agree_on_layout(Place& me, const std::string& path, const std::string& layout) {
  const std::string first = from_rank_zero(me.comm, path + " holds " + layout),
                    like = from_rank_zero(me.comm, layout);
  together(me.comm, [&] {
    if (layout != like)
      throw BadFile("--input: the files differ: " + first + ", but " + path + " holds " + layout);
  });
}

Vectors load(const Flags& f, Place& me) {
  if (f.input.empty()) {
    const Tensor x({f.size});
    fill_uniform(x, {uint64_t(f.seed), Purpose::kTest, 0, uint32_t(me.rank)}, -1, 1);
    return plain_vector(x, f.output);
  }
  const std::string path = file_of(f.input, me.rank);
  Vectors v;
  together(me.comm, [&] { v = read_vectors(path); });
  agree_on_layout(me, path, v.layout());
  return v;
}

void report(const Flags& f, Place& me, int64_t elements, const comm::AveragingResult& r) {
  std::vector<double> weights = {r.weight};
  if (me.comm) {
    weights.clear();
    for (const auto& w : comm::gather_numbers(*me.comm, {r.weight})) weights.push_back(w[0]);
  }
  const int64_t bytes = me.comm ? me.comm->traffic().bytes : 0;
  if (me.rank != 0) return;
  if (!f.json) {
    fmt::print(
        "{} numbers averaged between {} workers by {} in {} rounds, {:.3f} s; largest distance from the mean "
        "{:.3g}\n",
        elements, me.world, f.algorithm, r.rounds, r.seconds, r.error);
    return;
  }
  Json j = {{"algorithm", f.algorithm}, {"workers", me.world}, {"topology", f.topology},
            {"elements", elements},     {"rounds", r.rounds},  {"error", r.error},
            {"seconds", r.seconds},     {"weights", weights},  {"bytes_sent", bytes},
            {"transport", me.ways}};
  if (f.algorithm == "allreduce") j.erase("topology");
  fmt::print("{}\n", j.dump());
}

int work(const Flags& f, Place& me) {
  Vectors v = load(f, me);
  comm::AveragingResult result;
  if (me.comm) {
    const auto graph = comm::make_topology(f.topology, f.graph, me.world);
    const Tensor x({v.flat.size()}, kF32, me.comm->allocator());
    copy(x, v.flat);
    result = comm::average(
        *me.comm, graph.get(), x,
        {.algorithm = comm::parse_averaging(f.algorithm), .rounds = f.rounds, .tolerance = f.tolerance});
    copy(v.flat, x);
  } else {
    result.rounds = f.rounds;  // alone, every gossip is the identity
  }
  together(me.comm, [&] {
    if (!f.output.empty()) write_vectors(file_of(f.output, me.rank), v);
  });
  report(f, me, v.flat.size(), result);
  return 0;
}

int run(int argc, char** argv) {
  Flags f;
  CLI::App app{"Averages vectors between workers, without a model.", "gossip_avg"};
  declare(app, f);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) { return app.exit(e); } catch (const CLI::ParseError& e) {
    throw BadOption(text(e.what(), "; see gossip_avg --help"));
  }
  check(app, f);
  if (f.print_schedule) return print_schedule(f), 0;
  return run_job(f.job, argv, [&](Place& me) { return work(f, me); });
}

}  // namespace
}  // namespace skein::apps

int main(int argc, char** argv) {
  using namespace skein::apps;
  try {
    return run(argc, argv);
  } catch (const skein::BadOption& e) {
    fmt::print(stderr, "gossip_avg: {}\n", e.what());
    return kExitUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "gossip_avg: {}\n", e.what());
    return kExitRuntime;
  }
}
