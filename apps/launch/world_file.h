// WorldFile: what --simulate reads: machines, hosts, a network, the pace of computing,
// gradients, faults. docs/simulation.md
#pragma once
#include <string>
#include <vector>

#include "comm/sim/misfortunes.h"
#include "comm/sim/pace.h"

namespace skein::apps {

// Where gradients come from: the model, or what takes its place (apps/flat).
struct GradientPlan {
  enum class Kind : uint8_t { kReal, kQuadratic, kGhost } kind = Kind::kReal;
  int64_t dimension = 1000;       // kQuadratic: of x
  double condition = 10;          // its steepest direction is so many times as steep as its flattest
  double zeta = 0, noise = 0;     // how far a worker's gradients are from those of all, always and by chance
  int64_t classes = 1000;         // kGhost: of the model, as are the next three
  int64_t height = 0, width = 0;  // of its images; 0: what the model was made for
  int64_t channels = 3;
  std::vector<double> timeline = {};  // shares of backward after which its slices are final; empty: unknown
};

struct WorldFile {
  struct Fault {
    enum class Kind : uint8_t { kKill, kKillMachine, kHang, kCut } kind = Kind::kKill;
    double at = 0, seconds = 0;  // when, and for how long if it passes
    std::vector<int> workers;
    bool server = false;  // it also befalls a server, which lives on the first host
  };
  uint64_t seed = 1;
  std::string log;  // file for all events, as its path from here; empty: none
  comm::sim::SitePlan site;
  comm::sim::Weather weather;
  comm::sim::PacePlan pace;
  GradientPlan gradient;
  std::vector<double> speeds;  // of the hosts
  std::vector<Fault> faults;
  comm::sim::Rates rates;
  double rates_until = 1e6;  // seconds
};

// Throws BadFile if it cannot be read, and BadOption, which begins with file and line.
WorldFile read_world(const std::string& path);
WorldFile parse_world(const std::string& toml, const std::string& path);

}  // namespace skein::apps
