// --doctor: checks everything outside the program that a run needs, one line per check, and says what to do.
#pragma once
#include <string>
#include <vector>

#include "apps/config/config.h"
#include "apps/launch/job.h"

namespace skein::apps {

constexpr double kMega = 1 << 20, kGiga = 1 << 30;

struct Finding {
  enum Grade : uint8_t { kOk, kWarning, kProblem } grade = kOk;
  std::string subject;  // "disk"
  std::string what;     // what was found, one line
  std::string remedy;   // what to do; empty if it is in order
};
using Findings = std::vector<Finding>;

inline Finding in_order(std::string subject, std::string what) {
  return {Finding::kOk, std::move(subject), std::move(what), ""};
}
inline Finding warning(std::string subject, std::string what, std::string remedy) {
  return {Finding::kWarning, std::move(subject), std::move(what), std::move(remedy)};
}
inline Finding problem(std::string subject, std::string what, std::string remedy) {
  return {Finding::kProblem, std::move(subject), std::move(what), std::move(remedy)};
}

// What is checked: a run with this configuration, on this host.
struct Patient {
  const Config& config;
  Seat seat;
  int here = 1;                         // workers on this host
  int world = 1;                        // all
  std::vector<std::string> hosts = {};  // --hosts, if a doctor runs on each of them; else empty
  bool several_hosts() const { return world > here; }
};

// Each checks one part of the machine. None throws or leaves anything behind.
void check_processor(const Patient&, Findings&);
void check_memory(const Patient&, Findings&);  // also shared memory
void check_limits(const Patient&, Findings&);  // of the shell: open files, locked memory
void check_gpu(const Patient&, Findings&);
void check_disk(const Patient&, Findings&);  // space, speed and the file system's clock
void check_interfaces(const Patient&, Findings&);
void check_ucx(const Patient&, Findings&);
void check_port(const Patient&, Findings&);
void check_run(const Patient&, Findings&);  // data and model
// The doctors of RANK and WORLD_SIZE, or one on each of --hosts, meet and compare their clocks, and rank 0
// collects their findings. Returns the findings of each rank; they are complete only on rank 0.
std::vector<Findings> meet_and_compare(const Patient&, Findings mine);

// "warning  disk: 900 MB free ...: do this", without a line end.
std::string line_of(const Finding&);

// Runs and prints all checks (rank 0 prints for all workers); with --hosts, on each host. `argv` is this
// program's. Returns the exit status: 1 if there is a problem on any host, else 0.
int doctor(const Config&, char** argv);

}  // namespace skein::apps
