// All checks in turn, and their lines.
#include "apps/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/base/host.h"
#include "apps/base/printable.h"
#include "apps/launch/crew/hosts.h"
#include "apps/launch/host_list.h"
#include "apps/launch/launch.h"

namespace skein::apps {
namespace {

int64_t count(const std::vector<Findings>& all, Finding::Grade g) {
  int64_t n = 0;
  for (const Findings& one : all)
    n += std::count_if(one.begin(), one.end(), [&](const Finding& f) { return f.grade == g; });
  return n;
}

Patient patient_of(const Config& c) {
  Patient p{.config = c, .seat = seat_from_environment()};
  p.world = p.seat.told ? p.seat.world : int(std::max<int64_t>(1, c.workers));
  p.here = p.seat.told ? p.seat.local_world : p.world;
  if (!p.seat.told || c.hosts.empty()) return p;
  const std::vector<HostShare> shares = parse_hosts(c.hosts, job_options(c).workers);
  if (int(shares.size()) != p.seat.world) return p;
  p.world = 0;
  for (const HostShare& h : shares) p.world += h.workers, p.hosts.push_back(h.name);
  p.here = shares[size_t(p.seat.rank)].workers;
  return p;
}

// Starts one doctor on each host, regardless of its number of workers.
int ask_hosts(const Config& c, char** argv) {
  HostsJob job{parse_hosts(c.hosts, job_options(c).workers), std::min(c.deadline, 60.0)};
  for (HostShare& h : job.hosts) h.workers = 1;
  try {
    return run_on_hosts(job, argv);
  } catch (const BadOption&) { throw; } catch (const Error& e) {
    fmt::print("{}\n{}, {}\n", line_of(problem("hosts", e.what(), "")), counted(1, "problem"),
               counted(0, "warning"));
    return 1;
  }
}

}  // namespace

std::string line_of(const Finding& f) {
  static constexpr const char* kGrades[] = {"ok", "warning", "problem"};
  return fmt::format("{:<9}{}: {}{}{}", kGrades[f.grade], f.subject, f.what,
                     f.remedy.empty() ? "" : "; to do: ", f.remedy);
}

int doctor(const Config& c, char** argv) {
  if (is_part_of_hosts()) return run_part_of_hosts(argv, {}, comm::parse_port_range(c.port_range));
  const Patient p = patient_of(c);
  if (!p.seat.told && !c.hosts.empty()) return ask_hosts(c, argv);
  Findings mine = {in_order("host", fmt::format("{}, {} of {}, skein {}", host_name(),
                                                counted(p.here, "worker"), p.world, SKEIN_VERSION))};
  for (const auto check : {check_processor, check_memory, check_limits, check_gpu, check_disk,
                           check_interfaces, check_ucx, check_port, check_run})
    check(p, mine);
  const std::vector<Findings> all =
      p.seat.told && p.world > 1 ? meet_and_compare(p, mine) : std::vector<Findings>{mine};
  const int64_t problems = count(all, Finding::kProblem), warnings = count(all, Finding::kWarning);
  if (p.seat.rank == 0 || all.size() == 1) {
    for (size_t r = 0; r < all.size(); ++r) {
      if (all.size() > 1)
        fmt::print("{}{}\n", r ? "\n" : "", p.hosts.empty() ? fmt::format("rank {}", r) : "on " + p.hosts[r]);
      for (const Finding& f : all[r]) fmt::print("{}\n", line_of(f));
    }
    fmt::print("{}, {}\n", counted(problems, "problem"), counted(warnings, "warning"));
  }
  return problems > 0 ? 1 : 0;
}

}  // namespace skein::apps
