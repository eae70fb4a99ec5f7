// What users, launchers and files of options say.
#include <cstdlib>
#include <filesystem>

#include "apps/command_line/command_line.h"
#include "apps/config/algorithm_values.h"
#include "apps/config/reconcile.h"
#include "apps/gossip/gossip_flags.h"
#include "apps/launch/host_list.h"
#include "apps/launch/seat.h"
#include "apps/launch/world_file.h"
#include "comm/topology/topology.h"
#include "data/pictures/augment.h"
#include "data/sources/shards.h"
#include "data/sources/split.h"
#include "engine/words/json.h"
#include "optim/schedule.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

// Whether a number in the text has so many digits: of four or five, a range that may be wide, but
// is not refused.
bool has_number(const std::string& s, size_t least, size_t most) {
  size_t digits = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size() && s[i] >= '0' && s[i] <= '9') {
      ++digits;
      continue;
    }
    if (digits >= least && digits <= most) return true;
    digits = 0;
  }
  return false;
}

// Whether a pattern names few shards, in one directory.
bool is_small(const std::string& pattern) {
  return pattern.size() < 40 && pattern.find('/') == std::string::npos &&
         !has_number(pattern, 4, pattern.size());
}

}  // namespace

void nesting(Input in) {
  const std::string s = in.rest().c_str();  // to the parser a zero is the end
  int deepest = 0;
  const auto look = [&](int depth, nlohmann::json::parse_event_t e, const nlohmann::json&) {
    using Event = nlohmann::json::parse_event_t;
    if (e == Event::object_start || e == Event::array_start) deepest = std::max(deepest, depth + 1);
    return true;
  };
  if (nlohmann::json::parse(s, look, false).is_discarded()) return;
  require(nested_too_deeply(s) == (deepest > kMostLevels), "the depth of JSON was misjudged");
}

void config(Input in) {
  using namespace apps;
  const std::string toml = in.rest();
  may_refuse([&] {
    Config c;
    parse_toml(c, toml, "f.toml", Source::kFile);
    may_refuse([&] { reconcile(c); });
    may_refuse([&] { (void)parse_every(c); });
    may_refuse([&] { (void)own_values(c, 4); });
    const std::string written = to_toml(c);
    Config again;
    parse_toml(again, written, "g.toml", Source::kFile);
    require(to_toml(again) == written, "a configuration reads back as another one");
    (void)to_json(c);
  });
}

// The file, a byte of 1, and the file "trace", which it may name.
void world_file(Input in) {
  const std::string all = in.rest(), toml = all.substr(0, all.find('\1'));
  if (toml.find("trace") != std::string::npos) {
    if (toml.find('/') != std::string::npos) return;
    put("trace", all.substr(std::min(toml.size() + 1, all.size())));
  }
  may_refuse([&] {
    const apps::WorldFile w = apps::parse_world(toml, scratch() + "/w.toml");
    require(w.site.workers() > 0 && w.speeds.size() == w.site.hosts.size(),
            "a world without workers is accepted");
    comm::sim::check_connected(w.site);
    for (const apps::WorldFile::Fault& f : w.faults)
      for (int worker : f.workers)
        require(worker >= 0 && worker < w.site.workers(), "a fault of a worker that does not exist");
  });
}

// The first byte chooses the program; then comes one word a line. Files are looked for in an empty directory.
void command_line(Input in) {
  static const std::string empty = scratch() + "/empty";
  if (std::filesystem::create_directory(empty)) std::filesystem::current_path(empty);
  const bool averages = in.byte() & 1;
  std::vector<std::string> words = {averages ? "gossip_avg" : "train_imagenet"};
  while (in.left() > 0 && words.size() < 40) {
    words.push_back(in.line().c_str());
    if (words.back().find_first_of("/~") != std::string::npos) return;
  }
  std::vector<char*> argv;
  for (std::string& w : words) {
    const bool helps = w.starts_with("-h") || w.starts_with("--help");
    if (averages && (helps || w == "--version")) return;  // would be printed
    if (helps && words.size() > 3) return;  // costs a hundred times as much, whatever else is said
    argv.push_back(w.data());
  }
  may_refuse([&] {
    if (averages) return void(apps::read_gossip_flags(int(argv.size()), argv.data()));
    const apps::Command c = apps::parse_command_line(int(argv.size()), argv.data());
    if (c.action == apps::Command::kPrint) (void)apps::to_toml(c.config);
  });
}

void option_values(Input in) {
  const uint8_t which = in.byte();
  const std::string s = in.rest();
  may_refuse([&] {
    switch (which % 5) {
      case 0: {
        const std::vector<int64_t> at = optim::parse_schedule(s, 0.1, 10, 3, 1).milestones;
        require(std::is_sorted(at.begin(), at.end()) && (at.empty() || at[0] >= 0),
                "milestones out of order");
        break;
      }
      case 1:
        (void)data::parse_split(s);
        break;
      case 2:
        (void)data::parse_augment(s);
        break;
      case 3:
        if (is_small(s)) (void)data::expand_shards(scratch() + "/nowhere/" + s);
        break;
      case 4:
        apps::Config c;
        c.checkpoint_every = s;
        const apps::Every e = apps::parse_every(c);
        require(e.epochs >= 0 && e.steps >= 0, "a negative number of steps");
    }
  });
}

void environment(Input in) {
  constexpr const char* kNames[] = {"RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_RANK",
                                    "LOCAL_WORLD_SIZE",
                                    "SLURM_PROCID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_JOB_ID",
                                    "SLURM_STEP_ID",
                                    "SLURM_STEP_NODELIST",
                                    "SLURM_NODEID",
                                    "SLURM_STEP_TASKS_PER_NODE",
                                    "SLURM_LOCALID",
                                    "SLURM_CPUS_PER_TASK",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "PMIX_RANK",
                                    "TORCHELASTIC_USE_AGENT_STORE",
                                    "MASTER_PORT"};
  std::vector<const char*> set;
  const std::string list = in.line();
  while (in.left() > 0) {
    const char* name = kNames[in.byte() % std::size(kNames)];
    const std::string value = in.line();
    if (value.size() < 400 && has_number(value, 4, 5)) continue;  // only slow
    ::setenv(name, value.c_str(), 1);
    set.push_back(name);
  }
  may_refuse([&] {
    const apps::Seat s = apps::seat_from_environment();
    require(s.rank >= 0 && s.world >= 1 && s.rank < s.world, "a rank outside its world");
  });
  for (const char* name : set) ::unsetenv(name);
  for (const int workers : {0, 4})
    may_refuse([&] {
      for (const apps::HostShare& h : apps::parse_hosts(list, workers))
        require(h.workers >= 1 && !h.name.empty(), "a host without a name or workers");
    });
}

void graph(Input in) {
  const uint8_t how = in.byte();
  const int n = 1 + (how >> 1) % 9;
  const std::string words = in.rest();
  const std::string spec = how & 1 ? words.substr(0, 60) : "file:" + put("graph.json", words);
  if (how & 1 && words.find('/') != std::string::npos) return;
  may_refuse([&] {
    comm::TopologyOptions o;
    o.peers = how & 16 ? 2 : 0, o.base = 1 + (how >> 5);
    const auto g = comm::make_topology(spec, o, n);
    for (comm::Rank r = 0; r < n; ++r)
      for (int64_t q = 0; q < 5; ++q) {
        const comm::Mix mix = g->at(r, q);
        double given = mix.self;
        for (const comm::Edge& e : mix.out) {
          require(e.peer >= 0 && e.peer < n, "an edge leads out of the graph");
          given += e.weight;
        }
        require(given > 1 - 1e-5 && given < 1 + 1e-5, "a worker does not give 1 in all");
      }
  });
}

}  // namespace skein::fuzz
