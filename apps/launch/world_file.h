// WorldFile: what --simulate reads: machines, hosts, a network, the pace of computing, faults. docs/simulation.md
#pragma once
#include <string>
#include <vector>

#include "comm/sim/pace.h"

namespace skein::apps {

struct WorldFile {
  struct Fault {
    enum class Kind : uint8_t { kKill, kKillMachine, kHang, kCut } kind = Kind::kKill;
    double at = 0, seconds = 0;  // when, and for how long if it passes
    std::vector<int> workers;
  };
  uint64_t seed = 1;
  std::string log;  // file for all events; empty: none
  comm::sim::SitePlan site;
  comm::sim::Weather weather;
  comm::sim::PacePlan pace;
  std::vector<double> speeds;  // of the hosts
  std::vector<Fault> faults;
  comm::sim::Rates rates;
  double rates_until = 1e6;  // seconds
};

// Throws BadFile if it cannot be read, and BadOption, which begins with file and line.
WorldFile read_world(const std::string& path);
WorldFile parse_world(const std::string& toml, const std::string& path);

}  // namespace skein::apps
