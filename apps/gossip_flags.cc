// Declaring and checking the flags of gossip_avg.
#include "apps/gossip_flags.h"

#include <CLI/CLI.hpp>

#include "apps/host_list.h"

namespace skein::apps {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw BadOption(why); }

void check_pattern(const char* flag, const std::string& pattern, int workers) {
  if (!pattern.empty() && workers > 1 && pattern.find("{rank}") == std::string::npos)
    refuse(text(flag, " ", pattern, ": {rank} must stand in the name, or ", workers,
                " workers would share one file"));
}

void check_links(const CLI::App& app, const GossipFlags& f, int workers) {
  for (const char* other : {"--input", "--size", "--output", "--report", "--rounds", "--tolerance",
                            "--algorithm", "--topology", "--peers"})
    if (app.count(other)) refuse(text("--link-test averages nothing: leave ", other, " out"));
  if (workers < 2) refuse("--link-test needs at least 2 workers");
  if (f.repeats < 1) refuse(text("--repeats ", f.repeats, ": at least 1 is needed"));
}

}  // namespace

void declare(CLI::App& app, GossipFlags& f) {
  f.job.others_go_on = true;
  app.set_version_flag("--version", "gossip_avg " SKEIN_VERSION);
  app.add_option("--workers", f.job.workers, "number of workers, started here as processes");
  app.add_option("--hosts", f.job.hosts, "A,B,C or A:2,B:2: start the workers on these hosts, by ssh");
  app.add_option("--input", f.input,
                 "PATTERN: one .npy, .safetensors or run directory per worker, {rank} in the name");
  app.add_option("--size", f.size, "average random vectors of so many numbers instead");
  app.add_option("--topology", f.topology, "who speaks with whom; see train_imagenet --list topologies");
  app.add_option("--peers", f.graph.peers, "per gossip");
  app.add_option("--base", f.graph.base, "most peers per gossip in topology base");
  app.add_option("--algorithm", f.algorithm, "push-sum, pairwise or allreduce");
  app.add_option("--rounds", f.rounds, "exactly so many gossips");
  app.add_option("--tolerance", f.tolerance, "until no number is further from the mean than this");
  app.add_option("--output", f.output, "PATTERN: where each worker writes its result, {rank} in the name");
  app.add_option("--report", f.report, "FILE.html: a picture of the error over the rounds");
  app.add_option("--seed", f.seed, "of random vectors and random graphs");
  app.add_option("--transport", f.job.transport, "auto, local, shared or ucx");
  app.add_option("--interface", f.job.interface, "between hosts, as eth0; without it the fastest is taken");
  app.add_option("--wire", f.wire, "fp32 or bf16: what push-sum's shares travel as");
  app.add_option("--deadline", f.job.deadline, "seconds that any single wait may take");
  app.add_flag("--json", f.json, "the result as JSON");
  app.add_flag("--print-schedule", f.print_schedule, "only print the graph, round by round");
  app.add_flag("--link-test", f.link_test, "only measure latency and bandwidth of every pair of workers");
  app.add_option("--repeats", f.repeats, "round trips of each size in --link-test");
}

void check(const CLI::App& app, GossipFlags& f) {
  const Seat seat = seat_from_environment();
  f.job.hosts_said = app.count("--hosts") > 0;
  const int given = int(app.count("--workers"));
  if (given && (f.job.workers < 1 || f.job.workers > kMostWorkers))
    refuse(text("--workers ", f.job.workers, ": from 1 to ", kMostWorkers, " can be"));
  if (!given && !seat.told && f.job.hosts.empty()) refuse("--workers is needed: how many workers average");
  const int workers = planned_workers(f.job);
  if (!(f.job.deadline > 0)) refuse(text("--deadline ", f.job.deadline, ": must be above 0"));
  if (f.wire != "fp32" && f.wire != "bf16") refuse("--wire " + f.wire + ": allowed are fp32 and bf16");
  if (f.wire == "bf16" && !f.link_test && comm::parse_averaging(f.algorithm) != comm::Averaging::kPushSum)
    refuse(
        "--wire bf16 is for push-sum, which keeps what rounding takes from a share; leave --algorithm out");
  if (f.wire == "bf16") f.job.wire = kBF16;
  if (f.link_test) return check_links(app, f, workers);
  if (app.count("--repeats")) refuse("--repeats is for --link-test");
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
  graph_over(f, workers, 1);
  if (f.print_schedule) {
    if (!f.rounds) refuse("--print-schedule needs --rounds");
    return;
  }
  if (f.input.empty() == (app.count("--size") == 0)) refuse("give --input PATTERN or --size N, one of them");
  if (app.count("--size") && f.size < 1) refuse(text("--size ", f.size, ": at least 1 is needed"));
  if (!f.rounds && f.tolerance == 0) f.algorithm == "allreduce" ? f.rounds = 1 : f.tolerance = 1e-5;
  if (!f.report.empty() && !f.report.ends_with(".html"))
    refuse(text("--report ", f.report, ": the name must end in .html"));
  check_pattern("--input", f.input, workers);
  check_pattern("--output", f.output, workers);
}

std::string file_of(std::string pattern, int rank) {
  for (size_t at; (at = pattern.find("{rank}")) != std::string::npos;)
    pattern.replace(at, 6, std::to_string(rank));
  return pattern;
}

std::unique_ptr<comm::Topology> graph_over(const GossipFlags& f, int workers, uint32_t epoch) {
  comm::TopologyOptions o = f.graph;
  o.epoch = epoch;
  const bool pairs = comm::parse_averaging(f.algorithm) == comm::Averaging::kPairwise;
  try {
    return comm::make_topology(f.topology, o, workers);
  } catch (const Error&) {
    if (epoch == 1) throw;
  }
  o.peers = 0;
  return comm::make_topology(pairs ? "random" : "exponential", o, workers);
}

}  // namespace skein::apps
