// Checks that all workers can meet, and that their clocks agree.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "apps/base/host.h"
#include "apps/doctor/doctor.h"
#include "apps/launch/meeting.h"
#include "comm/join/rendezvous.h"

namespace skein::apps {
namespace {

constexpr double kSkewSeen = 0.5,
                 kSkewFelt = 60;  // seconds: timelines no longer fit; Kerberos tickets and munge fail

std::string packed(const Findings& all) {
  std::ostringstream s;
  for (const Finding& f : all)
    s << int(f.grade) << '\x1f' << f.subject << '\x1f' << f.what << '\x1f' << f.remedy << '\x1e';
  return s.str();
}
Findings unpacked(const std::string& bytes) {
  Findings all;
  std::istringstream rows(bytes);
  for (std::string row; std::getline(rows, row, '\x1e');) {
    std::istringstream cells(row);
    std::string grade;
    Finding f;
    std::getline(cells, grade, '\x1f'), std::getline(cells, f.subject, '\x1f');
    std::getline(cells, f.what, '\x1f'), std::getline(cells, f.remedy, '\x1f');
    f.grade = Finding::Grade(std::atoi(grade.c_str()));
    all.push_back(std::move(f));
  }
  return all;
}

// All ranks read their clock when the same gather ends. The smallest of several differences from rank 0 is
// the most accurate, because the network adds to the others.
std::vector<double> clock_differences(comm::Exchange& e) {
  std::vector<double> least(size_t(e.size()), 1e18);
  for (int i = 0; i < 5; ++i) {
    e.all_gather("");
    const std::vector<std::string> said = e.all_gather(fmt::format("{:.9f}", wall_clock()));
    for (size_t r = 0; r < said.size(); ++r) {
      const double d = std::atof(said[r].c_str()) - std::atof(said[0].c_str());
      if (std::abs(d) < std::abs(least[r])) least[r] = d;
    }
  }
  return least;
}

Finding judged(const std::vector<double>& differences) {
  size_t worst = 0;
  for (size_t r = 0; r < differences.size(); ++r)
    if (std::abs(differences[r]) > std::abs(differences[worst])) worst = r;
  const double most = std::abs(differences[worst]);
  const std::string what = fmt::format("rank {} is {:.3f} s {} rank 0, the others nearer", worst, most,
                                       differences[worst] < 0 ? "behind" : "ahead of");
  const char* const remedy = "set the clocks of all hosts by NTP (chronyc makestep)";
  if (most > kSkewFelt) return problem("clocks", what, remedy);
  if (most > kSkewSeen) return warning("clocks", what, remedy);
  return in_order("clocks", fmt::format("all workers' within {:.3f} s", most));
}

}  // namespace

std::vector<Findings> meet_and_compare(const Patient& p, Findings mine) {
  try {
    Meeting where(p.seat, p.config.output.empty() ? "." : p.config.output, std::min(p.config.deadline, 60.0),
                  comm::parse_port_range(p.config.port_range));
    comm::RendezvousOptions options = where.options();
    const std::string address = fmt::format("{}:{}", options.host, options.port);
    comm::Rendezvous meeting(std::move(options));
    mine.push_back(in_order("meeting", fmt::format("all {} {} at {}, with the same key", p.seat.world,
                                                   p.hosts.empty() ? "workers" : "hosts", address)));
    const std::vector<double> differences = clock_differences(meeting);
    if (p.seat.rank == 0) mine.push_back(judged(differences));
    std::vector<Findings> all;
    for (const std::string& bytes : meeting.all_gather(packed(mine))) all.push_back(unpacked(bytes));
    return all;
  } catch (const Error& e) {
    mine.push_back(problem("meeting", e.what(),
                           "the same command on every host at about the same time; the same key file; a port "
                           "open in the firewall"));
    return {mine};
  }
}

}  // namespace skein::apps
