// Reads the world section by section; whatever is left over is a mistake.
#include "apps/launch/world_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "apps/base/printable.h"
#include "apps/config/section.h"
#include "engine/words/file.h"
#include "engine/words/find_row.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

using comm::sim::PacePlan;
using comm::sim::SitePlan;

constexpr int64_t kLongestFile = 1 << 20;        // bytes
constexpr int64_t kMostWorkers = (1 << 16) - 2;  // the network numbers them from 1, a server after them

// Beyond these a number is a slip, and its nanoseconds soon too many to count.
constexpr double kMostSeconds = 1e8, kMostRate = 1e9, kMostOften = 1e6, kMostCores = 1e6, kMostSpeed = 1e6;

// Of a duration in a unit of which there are so many in a second.
double duration(Section& s, const char* key, double per_second, double otherwise = 0) {
  return s.number(key, otherwise, 0, std::min(kMostSeconds * per_second, 1e9)) / per_second;
}

double bytes_per_second(Section& s, const char* key, double otherwise) {
  return s.has(key) ? s.number(key, 0, 0, kMostRate) * 1e6 / 8 : otherwise;
}

// Refuses a second one of a name.
template <class Rows>
std::string new_name(Section& s, const Rows& rows) {
  const std::string name = s.word("name");
  if (name.empty()) s.refuse("name", "is needed");
  for (const auto& row : rows)
    if (row.name == name) s.refuse("name", text("there is a '", name, "' already"));
  return name;
}

struct NetworkDefaults {
  double rate = 0, latency = 0;
  std::optional<Section> section;
};

// Work is done on cores that are counted.
void refuse_idle_work(const NetworkDefaults& d, const SitePlan& site) {
  const auto counted = [&](const SitePlan::Host& h) {
    return h.machine >= 0 && site.machines[size_t(h.machine)].cores > 0;
  };
  if (std::any_of(site.hosts.begin(), site.hosts.end(), counted)) return;
  for (const char* key : {"work_ns", "work_one_way_ns"})
    if (d.section && d.section->has(key)) d.section->refuse(key, "needs a host or a machine with cores");
}

// One share for all messages, or several by their size.
comm::sim::SharedRate read_shared(Section& s) {
  comm::sim::SharedRate all;
  if (!s.has_list("shared")) {
    if (s.has("shared")) all.points = {{1, s.number("shared", 1, 0.01, 1)}};
    return all;
  }
  for (Section& one : s.tables("shared", true)) {
    for (const char* key : {"kb", "left"})
      if (!one.has(key)) one.refuse(key, "is needed, as in [{kb = 50, left = 0.9}, {kb = 1000, left = 0.7}]");
    const double bytes = one.number("kb", 0, 1e-3, 1e9) * 1e3;
    if (!all.points.empty() && bytes <= all.points.back().bytes)
      one.refuse("kb", "must be more than in the one before");
    all.points.push_back({bytes, one.number("left", 1, 0.01, 1)});
    one.finish();
  }
  if (all.points.empty()) s.refuse("shared", "is empty; leave it out, or write one number for all messages");
  return all;
}

NetworkDefaults read_network(Section& top, WorldFile& w) {
  NetworkDefaults d;
  for (Section& s : top.tables("network", false)) {
    d.rate = bytes_per_second(s, "mbit_per_s", 0);
    d.latency = duration(s, "latency_ms", 1e3) / 2;  // half of the way from each end to the middle
    w.weather.jitter = duration(s, "jitter_ms", 1e3);
    w.weather.loss = s.number("loss", 0, 0, 0.9);
    w.weather.retry = duration(s, "retry_ms", 1e3, 10);
    s.needs("retry_ms", "loss");
    w.site.message = duration(s, "message_us", 1e6);
    w.site.byte = duration(s, "byte_ns", 1e9);
    w.site.work = duration(s, "work_ns", 1e9);
    w.site.work_one_way = duration(s, "work_one_way_ns", 1e9);
    w.site.shared = read_shared(s);
    w.site.goodput = s.number("goodput", 1, 0.01, 1);
    s.finish();
    d.section = s;
  }
  return d;
}

void read_machines(Section& top, SitePlan& site) {
  for (Section& s : top.tables("machine", true)) {
    const std::string name = new_name(s, site.machines);
    site.machines.push_back({name, s.number("cores", 0, 0, kMostCores)});
    s.finish();
  }
}

void read_switches(Section& top, SitePlan& site) {
  std::vector<Section> all = top.tables("switch", true);
  for (Section& s : all) {
    const std::string name = new_name(s, site.switches);
    site.switches.push_back({.name = name,
                             .rate = bytes_per_second(s, "mbit_per_s", 0),
                             .up = bytes_per_second(s, "up_mbit_per_s", 0),
                             .latency = duration(s, "latency_ms", 1e3)});
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (const std::string above = all[i].word("above"); !above.empty())
      site.switches[i].above = int(all[i].index("above", above, names_of(site.switches)));
    all[i].needs("up_mbit_per_s", "above");
    size_t steps = 0;
    for (int at = int(i); at >= 0; at = site.switches[size_t(at)].above)
      if (++steps > all.size()) all[i].refuse("above", "switches hang at each other in a circle");
    all[i].finish();
  }
}

void read_hosts(Section& top, WorldFile& w, const NetworkDefaults& defaults) {
  SitePlan& site = w.site;
  std::set<std::string> names;
  for (Section& s : top.tables("host", true)) {
    SitePlan::Host h{.name = s.word("name")};
    if (h.name.empty()) s.refuse("name", "is needed");
    const int64_t copies = s.count("count", 1, 1, kMostWorkers);
    h.workers = int(s.count("workers", 1, 1, kMostWorkers));
    h.rate = bytes_per_second(s, "mbit_per_s", defaults.rate);
    h.latency = s.has("latency_ms") ? duration(s, "latency_ms", 1e3) : defaults.latency;
    const double cores = s.number("cores", 0, 0, kMostCores), speed = s.number("speed", 1, 1e-6, kMostSpeed);
    if (const std::string machine = s.word("machine"); !machine.empty()) {
      if (s.has("cores")) s.refuse("cores", "those of its machine are meant; leave one of the two out");
      h.machine = int(s.index("machine", machine, names_of(site.machines)));
    }
    if (!site.switches.empty()) {
      const std::string at = s.word("switch", site.switches.size() == 1 ? site.switches[0].name : "");
      if (at.empty()) s.refuse("switch", "is needed, because there are several");
      h.at = int(s.index("switch", at, names_of(site.switches)));
    } else if (const std::string at = s.word("switch"); !at.empty()) {
      s.index("switch", at, {});
    }
    if (copies * h.workers + site.workers() > kMostWorkers)
      s.refuse("workers", text("there are more than ", kMostWorkers, " of them"));
    for (int64_t i = 0; i < copies; ++i) {
      SitePlan::Host one = h;
      if (copies > 1) one.name += text('-', i);
      if (s.has("cores"))
        site.machines.push_back({one.name, cores}), one.machine = int(site.machines.size()) - 1;
      site.hosts.push_back(one);
      w.speeds.push_back(speed);
    }
    s.finish();
  }
  if (site.hosts.empty()) top.refuse("host", "there is none; write a [[host]] for each, or one with a count");
  for (size_t i = 0; i < site.hosts.size(); ++i)
    if (const std::string& name = site.hosts[i].name; !names.insert(name).second)
      top.refuse("host", text("there are two of the name '", name, "'"));
}

void read_links(Section& top, SitePlan& site) {
  const std::vector<std::string> names = names_of(site.hosts);
  std::set<std::pair<int, int>> pairs;
  for (Section& s : top.tables("link", true)) {
    const auto end = [&](const char* key) {
      const std::string name = s.word(key);
      if (name.empty()) s.refuse(key, "is needed: a host at one end of the link");
      return int(s.index(key, name, names));
    };
    SitePlan::Link l{.a = end("from"), .b = end("to")};
    if (l.a == l.b) s.refuse("to", "a host has no link to itself");
    if (!pairs.emplace(std::minmax(l.a, l.b)).second)
      s.refuse("to", text("there is a link between ", names[size_t(l.a)], " and ", names[size_t(l.b)],
                          " already, for both directions"));
    l.rate = bytes_per_second(s, "mbit_per_s", 0);
    l.latency = duration(s, "latency_ms", 1e3);
    s.finish();
    site.links.push_back(l);
  }
}

std::string text_of(const Section& s, const char* key, const std::string& path) {
  try {
    return read_file(path, kLongestFile);
  } catch (const BadFile& e) { s.refuse(key, e.what()); }
}

// One number a line, in milliseconds; as the world file itself, it may come from Windows.
std::vector<double> read_trace(const Section& s, const std::string& path) {
  std::vector<double> seconds;
  std::istringstream lines(text_of(s, "trace", path));
  size_t n = 0;
  for (std::string line; std::getline(lines, line);) {
    ++n;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const double ms = number_in<double>(line).value_or(-1);
    if (!(ms >= 0 && ms <= 1e9))
      s.refuse("trace",
               text(path, ":", n, ": '", printable_excerpt(line), "' is not a time in milliseconds"));
    seconds.push_back(ms / 1e3);
  }
  if (seconds.empty()) s.refuse("trace", path + " is empty");
  return seconds;
}

// What a quadratic or a ghost is has a section of its own, which is only allowed beside it.
void read_gradient(Section& top, Section& compute, GradientPlan& g) {
  using Kind = GradientPlan::Kind;
  g.kind = Kind(compute.one_of("gradient", {"real", "quadratic", "ghost"}, "real"));
  if (g.kind != Kind::kGhost && compute.has("vector_ns")) compute.refuse("vector_ns", "is of ghosts alone");
  for (Section& s : top.tables("quadratic", false)) {
    if (g.kind != Kind::kQuadratic) top.refuse("quadratic", "needs gradient = \"quadratic\" in [compute]");
    g.dimension = s.count("dimension", g.dimension, 1, int64_t(1) << 30);
    g.condition = s.number("condition", g.condition, 1, 1e9);
    g.zeta = s.number("zeta", g.zeta, 0, 1e9), g.noise = s.number("noise", g.noise, 0, 1e9);
    s.finish();
  }
  for (Section& s : top.tables("ghost", false)) {
    if (g.kind != Kind::kGhost) top.refuse("ghost", "needs gradient = \"ghost\" in [compute]");
    g.classes = s.count("classes", g.classes, 2, 1 << 24);
    g.height = g.width = s.count("image_size", 0, 1, 1 << 14);
    g.channels = s.count("channels", g.channels, 1, 1 << 10);
    s.finish();
  }
}

void read_compute(Section& top, WorldFile& w, const std::filesystem::path& folder) {
  PacePlan& p = w.pace;
  for (Section& s : top.tables("compute", false)) {
    read_gradient(top, s, w.gradient);
    p.law = PacePlan::Law(s.one_of("law", {"constant", "lognormal", "markov", "trace"}, "constant"));
    p.step = duration(s, "step_ms", 1e3);
    p.forward = s.number("forward", p.forward, 0, 1);
    p.cores = s.number("cores", 1, 1e-3, kMostCores);
    p.ahead = duration(s, "ahead_ms", 1e3);
    p.vector = duration(s, "vector_ns", 1e9);
    using Law = PacePlan::Law;
    const auto belongs = [&](Law law, const char* key) {
      if (p.law != law && s.has(key)) s.refuse(key, "is of another law");
    };
    for (const char* key : {"slow", "enter", "leave"}) belongs(Law::kMarkov, key);
    belongs(Law::kLognormal, "sigma"), belongs(Law::kTrace, "trace");
    p.sigma = s.number("sigma", 0, 0, 10);
    p.slow = s.number("slow", 1, 1, 1e6);
    p.enter = s.number("enter", 0, 0, 1);
    p.leave = s.number("leave", 1, 1e-9, 1);
    const std::string trace = s.word("trace");
    if (p.law == Law::kTrace) {
      if (trace.empty()) s.refuse("trace", "is needed: a file with the milliseconds of a step on each line");
      if (s.has("step_ms")) s.refuse("step_ms", "is of another law: the trace says how long steps take");
      p.trace = read_trace(s, folder / trace);
    } else if (!s.has("step_ms")) {
      s.refuse("step_ms", "is needed: how long a step computes");
    }
    s.finish();
    return;
  }
  top.refuse("compute", "is needed: [compute] with step_ms, the time that a step computes");
}

size_t host_of(const SitePlan& site, int worker) {
  size_t h = 0;
  for (; worker >= site.hosts[h].workers; ++h) worker -= site.hosts[h].workers;
  return h;
}

// Who it befalls: a worker, those of a host, or those of all hosts that lie on the same machine.
void read_victims(Section& s, const SitePlan& site, WorldFile::Fault& f) {
  using Kind = WorldFile::Fault::Kind;
  if (s.has("worker") == s.has("host")) s.refuse("host", "either a host or a worker is needed");
  const bool one = s.has("worker");
  const int worker = int(s.count("worker", 0, 0, site.workers() - 1));
  const size_t host = one ? host_of(site, worker) : s.one_of("host", names_of(site.hosts), "");
  if (one && f.kind != Kind::kKillMachine) return f.workers.push_back(worker);
  const int machine = f.kind == Kind::kKillMachine ? site.hosts[host].machine : -1;
  int first = 0;
  for (size_t h = 0; h < site.hosts.size(); first += site.hosts[h++].workers) {
    if (h != host && (machine < 0 || site.hosts[h].machine != machine)) continue;
    for (int i = 0; i < site.hosts[h].workers; ++i) f.workers.push_back(first + i);
    f.server = f.server || (h == 0 && (f.kind == Kind::kKillMachine || f.kind == Kind::kCut));
  }
}

void read_faults(Section& top, WorldFile& w) {
  for (Section& s : top.tables("fault", true)) {
    WorldFile::Fault f;
    f.kind = WorldFile::Fault::Kind(s.one_of("kind", {"kill", "kill-machine", "hang", "cut"}, "kill"));
    if (!s.has("at_s")) s.refuse("at_s", "is needed: the second at which it happens");
    f.at = duration(s, "at_s", 1);
    read_victims(s, w.site, f);
    const bool passes = f.kind == WorldFile::Fault::Kind::kHang || f.kind == WorldFile::Fault::Kind::kCut;
    if (!passes && s.has("seconds")) s.refuse("seconds", "a killed worker does not come back");
    if (passes && !s.has("seconds")) s.refuse("seconds", "is needed: how long it lasts");
    f.seconds = duration(s, "seconds", 1);
    if (passes && f.seconds == 0) s.refuse("seconds", "must be more than 0: how long it lasts");
    s.word("host");
    s.finish();
    w.faults.push_back(f);
  }
  for (Section& s : top.tables("faults", false)) {
    w.rates.kills = s.number("kills_per_hour", 0, 0, kMostOften) / 3600;
    w.rates.hangs = s.number("hangs_per_hour", 0, 0, kMostOften) / 3600;
    w.rates.cuts = s.number("cuts_per_hour", 0, 0, kMostOften) / 3600;
    w.rates.hang_seconds = duration(s, "hang_s", 1, w.rates.hang_seconds);
    w.rates.cut_seconds = duration(s, "cut_s", 1, w.rates.cut_seconds);
    w.rates_until = duration(s, "until_s", 1, w.rates_until);
    s.needs("hang_s", "hangs_per_hour"), s.needs("cut_s", "cuts_per_hour");
    s.finish();
  }
}

}  // namespace

WorldFile parse_world(const std::string& toml, const std::string& path) {
  const TomlFile file(toml, path);
  WorldFile w;
  Section top = file.top();
  w.seed = uint64_t(top.count("seed", 1, 0, INT64_MAX));
  w.weather.seed = w.seed;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (const std::string log = top.word("log"); !log.empty()) w.log = folder / log;
  const NetworkDefaults defaults = read_network(top, w);
  read_machines(top, w.site);
  read_switches(top, w.site);
  read_hosts(top, w, defaults);
  refuse_idle_work(defaults, w.site);
  read_links(top, w.site);
  read_compute(top, w, folder);
  read_faults(top, w);
  top.finish();
  try {
    comm::sim::check_connected(w.site);
  } catch (const Error& e) { throw BadOption(text(path, ": ", e.what())); }
  return w;
}

WorldFile read_world(const std::string& path) { return parse_world(read_file(path, kLongestFile), path); }

}  // namespace skein::apps
