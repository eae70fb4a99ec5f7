// Declares and checks the flags of gossip_avg.
#include "apps/gossip/gossip_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/launch/host_list.h"
#include "engine/words/find_row.h"

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

void declare(CLI::App& app, GossipFlags& f) {
  app.allow_extras();  // so that we write the message about an unknown flag
  app.set_version_flag("--version", "gossip_avg " SKEIN_VERSION);
  const auto add = [&](const char* name, auto& to, const char* type, const std::string& help) {
    return app.add_option(name, to, help)->type_name(type);
  };
  const auto or_default = [](const std::string& help, const auto& otherwise) {
    return text(help, " [", otherwise, "]");
  };
  add("--workers", f.job.workers, "N", "number of workers, started here as processes [one per --input file]");
  add("--hosts", f.job.hosts, "LIST", "A,B,C or A:2,B:2: start the workers on these hosts, by ssh");
  add("--input", f.input, "FILE",
      "a .npy, a .safetensors or a run's directory for each worker: one name with {rank} in it, or all names")
      ->expected(1, -1);
  add("--size", f.size, "N", "average random vectors with this many numbers instead");
  add("--topology", f.topology, "NAME",
      "which workers exchange with which; see train_imagenet --list topologies [exponential; for pairwise "
      "bipartite-exponential, or random with an odd number of workers]");
  add("--peers", f.graph.peers, "N", or_default("per gossip", f.graph.default_peers));
  add("--base", f.graph.base, "N", or_default("most peers per gossip in topology base", f.graph.base));
  add("--algorithm", f.algorithm, "NAME", or_default("push-sum, pairwise or allreduce", f.algorithm));
  add("--rounds", f.rounds, "N", "exactly this many gossips [allreduce: 1; else until the tolerance is met]");
  add("--tolerance", f.tolerance, "E",
      "until no number is further from the mean than this [1e-5 of each number's size, float64: 1e-12]");
  add("--output", f.output, "PATTERN", "where each worker writes its result, {rank} in the name");
  add("--report", f.report, "FILE.html", "a picture of the error over the rounds");
  add("--seed", f.seed, "N", or_default("of random vectors and random graphs", f.seed));
  add("--transport", f.job.transport, "NAME", or_default("auto, local, shared, tcp or ucx", f.job.transport));
  add("--seal", f.job.seal, "auto|on|off",
      or_default("encrypt what leaves a host: auto all but RDMA, on all, off nothing", f.job.seal));
  add("--port-range", f.port_range, "A-B", "ports at which processes may listen [any that are free]");
  add("--interface", f.job.interface, "NAME", "network interface between hosts, such as eth0 [the fastest]");
  add("--wire", f.wire, "TYPE", or_default("fp32 or bf16: type in which push-sum sends its shares", f.wire));
  add("--deadline", f.job.deadline, "SECONDS", or_default("that any single wait may take", f.job.deadline));
  app.add_flag("--json", f.json, "the result as JSON");
  app.add_flag("--print-schedule", f.print_schedule, "only print the graph, round by round");
  app.add_flag("--link-test", f.link_test, "only measure latency and bandwidth of every pair of workers");
  add("--repeats", f.repeats, "N", or_default("round trips of each size in --link-test", f.repeats));
  app.footer(
      "Examples:\n"
      "  gossip_avg --workers 4 --input part{rank}.npy --output mean{rank}.npy\n"
      "  gossip_avg --input runs/a runs/b runs/c --output soup{rank}.safetensors\n"
      "  gossip_avg --hosts a,b --link-test");
}

void refuse_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const std::string said = extras[0].substr(0, extras[0].find('='));
  if (said[0] != '-') refuse("unexpected argument '" + said + "'; see gossip_avg --help");
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options()) names.push_back(o->get_lnames()[0]);
  const std::string meant = nearest(said.substr(std::min(said.find_first_not_of('-'), said.size())), names);
  refuse("unknown flag " + said + (meant.empty() ? "" : "; did you mean --" + meant + "?") +
         "; see gossip_avg --help");
}

void check(const CLI::App& app, GossipFlags& f) {
  const Seat seat = seat_from_environment();
  f.job.hosts_said = app.count("--hosts") > 0;
  const int files = int(f.input.size());
  if (files > 1 && !app.count("--workers") && !seat.told && f.job.hosts.empty()) f.job.workers = files;
  const bool given = app.count("--workers") > 0 || f.job.workers > 0;
  if (given && (f.job.workers < 1 || f.job.workers > kMostWorkers))
    refuse(text("--workers ", f.job.workers, ": from 1 to ", kMostWorkers, " can be"));
  if (!given && !seat.told && f.job.hosts.empty()) refuse("--workers is needed: how many workers average");
  f.job.ports = comm::parse_port_range(f.port_range);
  const int workers = planned_workers(f.job);
  if (!(f.job.deadline > 0)) refuse(text("--deadline ", f.job.deadline, ": must be above 0"));
  f.job.wire = one_of<DType>("--wire", f.wire, {{"fp32", kF32}, {"bf16", kBF16}});
  if (f.job.wire == kBF16 && !f.link_test && comm::parse_averaging(f.algorithm) != comm::Averaging::kPushSum)
    refuse(
        "--wire bf16 is for push-sum, which keeps the rounding errors of its shares; leave --algorithm out");
  if (f.link_test) return check_links(app, f, workers);
  f.job.loss = Loss::kIsSurvived;
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
  if (f.input.empty() == (app.count("--size") == 0)) refuse("give --input FILE... or --size N, one of them");
  if (app.count("--size") && f.size < 1) refuse(text("--size ", f.size, ": at least 1 is needed"));
  if (!f.rounds && f.tolerance == 0 && f.algorithm == "allreduce") f.rounds = 1;
  if (!f.report.empty() && !f.report.ends_with(".html"))
    refuse(text("--report ", f.report, ": the name must end in .html"));
  if (files > 1 && files != workers)
    refuse(text("--input names ", files, " files for ", workers,
                " workers; give one for each, or one name with {rank}"));
  if (files == 1) check_pattern("--input", f.input[0], workers);
  check_pattern("--output", f.output, workers);
}

}  // namespace

std::optional<GossipFlags> read_gossip_flags(int argc, char** argv) {
  GossipFlags f;
  CLI::App app{"Averages vectors between workers, without a model.", "gossip_avg"};
  declare(app, f);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return {};
  } catch (const CLI::ParseError& e) {
    throw BadOption(text(e.what(), "; see gossip_avg --help"));
  } catch (const std::out_of_range&) {  // CLI11 reads what is given to a flag that is on or off as a number
    throw BadOption("a number given to a flag that takes none is too large; see gossip_avg --help");
  }
  refuse_extras(app);
  check(app, f);
  return f;
}

std::string file_of(std::string pattern, int rank) {
  for (size_t at; (at = pattern.find("{rank}")) != std::string::npos;)
    pattern.replace(at, 6, std::to_string(rank));
  return pattern;
}

std::string input_of(const GossipFlags& f, int rank) {
  return file_of(f.input.size() > 1 ? f.input.at(size_t(rank)) : f.input.at(0), rank);
}

double relative_tolerance(const GossipFlags& f, bool doubles) {
  return f.rounds > 0 || f.tolerance > 0 ? 0 : doubles ? 1e-12 : 1e-5;
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
