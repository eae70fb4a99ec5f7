// All checks in turn, and their lines.
#include "apps/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace skein::apps {
namespace {

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

Patient patient_of(const Config& c) {
  Patient p{.config = c, .seat = seat_from_environment()};
  p.world = p.seat.told ? p.seat.world : int(std::max<int64_t>(1, c.workers));
  p.here = p.seat.told ? p.seat.local_world : p.world;
  return p;
}

int64_t count(const std::vector<Findings>& all, Finding::Grade g) {
  int64_t n = 0;
  for (const Findings& one : all)
    n += std::count_if(one.begin(), one.end(), [&](const Finding& f) { return f.grade == g; });
  return n;
}

std::string times(int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

}  // namespace

std::string line_of(const Finding& f) {
  static constexpr const char* kGrades[] = {"ok", "warning", "problem"};
  return fmt::format("{:<9}{}: {}{}{}", kGrades[f.grade], f.subject, f.what,
                     f.remedy.empty() ? "" : "; to do: ", f.remedy);
}

int doctor(const Config& c) {
  const Patient p = patient_of(c);
  Findings mine = {in_order("host", fmt::format("{}, {} of {}, skein {}", host_name(),
                                                times(p.here, "worker"), p.world, SKEIN_VERSION))};
  for (const auto check : {check_processor, check_memory, check_limits, check_gpu, check_disk,
                           check_interfaces, check_ucx, check_port})
    check(p, mine);
  const std::vector<Findings> all =
      p.seat.told && p.world > 1 ? meet_and_compare(p, mine) : std::vector<Findings>{mine};
  const int64_t problems = count(all, Finding::kProblem), warnings = count(all, Finding::kWarning);
  if (p.seat.rank == 0 || all.size() == 1) {
    for (size_t r = 0; r < all.size(); ++r) {
      if (all.size() > 1) fmt::print("{}rank {}\n", r ? "\n" : "", r);
      for (const Finding& f : all[r]) fmt::print("{}\n", line_of(f));
    }
    fmt::print("{}, {}\n", times(problems, "problem"), times(warnings, "warning"));
  }
  return problems > 0 ? 1 : 0;
}

}  // namespace skein::apps
