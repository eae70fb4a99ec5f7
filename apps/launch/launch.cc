// Reads what the flags say about workers.
#include "apps/launch/launch.h"

#include "apps/base/environment.h"
#include "apps/config/algorithm_values.h"
#include "apps/launch/crew/hosts.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/membership_note.h"
#include "apps/launch/seat.h"
#include "engine/words/find_row.h"

namespace skein::apps {

namespace {

// Why the workers of such a run cannot come and go; empty: they can.
std::string why_not_elastic(const Config& c) {
  if (c.split != "iid" || !c.record.empty() || !c.replay.empty())
    return text("with ", c.split != "iid" ? "--split " + c.split : "--record and --replay",
                " each worker has its own part, which others cannot take over; leave one of them out");
  return "";
}

// Throws BadOption if a flag asks for an elastic run and it cannot be one.
bool is_elastic(const Config& c) {
  if (c.elastic == "off") return false;
  const std::string why_not = why_not_elastic(c);
  if (why_not.empty()) return true;
  if (c.elastic == "on") throw BadOption("--elastic on: " + why_not);
  for (const char* flag : {"min-workers", "max-workers", "restarts"})
    if (asks_for(c, flag)) throw BadOption(text("--", flag, " is of elastic runs: ", why_not));
  return false;
}

// The job that this process is to enter as a newcomer: what --join says, or the launcher of fresh workers.
// SLURM, mpirun or a script may also start a process of a job's command again, or one more, while the others
// are at work. A process that starts workers itself, or was started by --workers or --hosts, is another run,
// which the directory's lock refuses.
std::string job_to_enter(const Config& c, const JobOptions& o) {
  if (!c.join.empty()) return c.join;
  if (const auto told = variable(kJoinVariable)) return *told;
  const bool starts_workers = c.origin("workers").source > Source::kResumed || o.hosts_said;
  const bool started = seat_from_environment().by != Seat::kNobody && !variable(kReportsVariable);
  if (!o.elastic || starts_workers || !started || is_part_of_hosts() || c.output.empty()) return "";
  return has_running_job(c.output) ? c.output : "";
}

}  // namespace

JobOptions job_options(const Config& c) {
  JobOptions o;
  o.workers = int(c.workers);
  const Source said = c.origin("workers").source;
  if (said == Source::kDefault || (said == Source::kResumed && seat_from_environment().told)) o.workers = 0;
  o.transport = c.transport;
  o.interface = c.interface;
  o.seal = c.seal;
  o.ports = comm::parse_port_range(c.port_range);
  o.gpu_messages = c.device != "cpu" && c.device_messages != "off";
  o.deadline = c.wait == "forever" ? comm::kForever : c.deadline;
  o.wire = c.wire == "bf16" ? kBF16 : kF32;  // codecs are the algorithm's
  const optim::StrategyRow& row = optim::strategy_row(c.algorithm);
  o.server = optim::has_dedicated_server(options_of(c));
  if (row.center()) o.loss = Loss::kOfFirstEnds;  // worker 0 keeps or fetches the center
  o.elastic = is_elastic(c);
  o.description = to_toml(c);
  o.identity = text("skein ", SKEIN_VERSION, ", ", c.model, " by ", c.algorithm, ", seed ", c.seed);
  o.min_workers = int(c.min_workers), o.max_workers = int(c.max_workers);
  o.restarts = int(c.restarts);
  if (!c.output.empty()) o.place = c.output;
  o.hosts = c.hosts;
  o.hosts_said = asks_for(c, "hosts");
  o.join = job_to_enter(c, o);
  return o;
}

std::string one_line(std::string lines) {
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  for (size_t at; (at = lines.find('\n')) != std::string::npos;) lines.replace(at, 1, "; ");
  return lines;
}

}  // namespace skein::apps
