// World files: what is read, and one clear message for each mistake.
#include "apps/launch/world_file.h"

#include "tests/support/program.h"

namespace skein::apps {
namespace {

const std::string kCompute = "[compute]\nstep_ms = 100\n", kHost = "[[host]]\nname = \"a\"\n",
                  kLeast = kCompute + kHost;

WorldFile world_of(const std::string& toml) { return parse_world(toml, "w.toml"); }

TEST(WorldFile, IsReadAsItSays) {
  const WorldFile w = world_of(R"(
seed = 7
[compute]
step_ms = 250
ahead_ms = 50
law = "lognormal"
sigma = 0.25
cores = 2
[network]
mbit_per_s = 1000
latency_ms = 0.5
message_us = 20
work_ns = 4
work_one_way_ns = 5
shared = [{kb = 50, left = 0.9}, {kb = 500, left = 0.75}]
goodput = 0.9
[[machine]]
name = "tower"
cores = 8
[[switch]]
name = "core"
[[switch]]
name = "rack"
above = "core"
up_mbit_per_s = 10000
[[host]]
name = "a"
machine = "tower"
switch = "rack"
workers = 2
[[host]]
name = "b"
count = 3
cores = 4
switch = "core"
mbit_per_s = 200
speed = 0.5
[[link]]
from = "a"
to = "b-1"
mbit_per_s = 80
latency_ms = 3
[[fault]]
at_s = 30
kind = "hang"
host = "a"
seconds = 5
[faults]
kills_per_hour = 36
)");
  EXPECT_EQ(w.seed, 7u);
  EXPECT_EQ(w.pace.law, comm::sim::PacePlan::Law::kLognormal);
  EXPECT_EQ(w.pace.step, 0.25);
  EXPECT_EQ(w.pace.ahead, 0.05);
  EXPECT_DOUBLE_EQ(w.site.message, 20e-6);
  EXPECT_DOUBLE_EQ(w.site.work, 4e-9);
  EXPECT_DOUBLE_EQ(w.site.work_one_way, 5e-9);
  ASSERT_EQ(w.site.shared.points.size(), 2u);
  EXPECT_EQ(w.site.shared.points[1].bytes, 5e5);
  EXPECT_EQ(w.site.shared.left(5e4), 0.9);
  EXPECT_EQ(w.site.shared.left(1e7), 0.75);
  const auto shared = [](const std::string& as) { return world_of(kLeast + as).site.shared.left(1e6); };
  EXPECT_EQ(shared(""), 1);
  EXPECT_EQ(shared("[network]\nshared = 0.9\n"), 0.9);
  EXPECT_EQ(shared("[[network.shared]]\nkb = 5\nleft = 0.8\n"), 0.8);
  EXPECT_EQ(w.site.goodput, 0.9);
  ASSERT_EQ(w.site.hosts.size(), 4u);
  EXPECT_EQ(w.site.workers(), 5);
  EXPECT_EQ(w.site.hosts[0].rate, 1.25e8);
  EXPECT_EQ(w.site.hosts[0].latency, 0.25e-3);
  EXPECT_EQ(w.site.hosts[0].at, 1);
  EXPECT_EQ(w.site.hosts[3].name, "b-2");
  EXPECT_EQ(w.site.hosts[3].rate, 2.5e7);
  EXPECT_EQ(w.site.machines[size_t(w.site.hosts[3].machine)].cores, 4);
  EXPECT_NE(w.site.hosts[2].machine, w.site.hosts[3].machine);
  EXPECT_EQ(w.site.switches[1].above, 0);
  ASSERT_EQ(w.site.links.size(), 1u);
  EXPECT_EQ(w.site.links[0].b, 2);
  EXPECT_EQ(w.site.links[0].rate, 1e7);
  EXPECT_EQ(w.site.links[0].latency, 3e-3);
  EXPECT_EQ(w.speeds, (std::vector<double>{1, 0.5, 0.5, 0.5}));
  ASSERT_EQ(w.faults.size(), 1u);
  EXPECT_EQ(w.faults[0].workers, (std::vector<int>{0, 1}));
  EXPECT_EQ(w.rates.kills, 0.01);
}

TEST(WorldFile, AMachineEndsWithAllHostsOnIt) {
  const std::string places = kCompute + "[[machine]]\nname = \"box\"\n" +
                             "[[host]]\nname = \"a\"\ncount = 2\nworkers = 2\nmachine = \"box\"\n" +
                             "[[host]]\nname = \"b\"\nworkers = 2\n[[fault]]\nat_s = 1\n";
  using All = std::vector<int>;
  const auto fault = [&](const std::string& f) { return world_of(places + f).faults.at(0); };
  EXPECT_EQ(fault("kind = \"kill-machine\"\nhost = \"a-1\"\n").workers, (All{0, 1, 2, 3}));
  EXPECT_EQ(fault("kind = \"kill-machine\"\nworker = 3\n").workers, (All{0, 1, 2, 3}));
  EXPECT_EQ(fault("kind = \"kill-machine\"\nworker = 4\n").workers, (All{4, 5})) << "on a machine of its own";
  EXPECT_EQ(fault("host = \"a-1\"\n").workers, (All{2, 3}));
  EXPECT_EQ(fault("worker = 3\n").workers, (All{3}));
  // A server lives on the first host.
  const std::string cut = "kind = \"cut\"\nseconds = 1\n";
  EXPECT_TRUE(fault("kind = \"kill-machine\"\nworker = 3\n").server);
  EXPECT_TRUE(fault(cut + "host = \"a-0\"\n").server);
  EXPECT_FALSE(fault(cut + "host = \"a-1\"\n").server);
  EXPECT_FALSE(fault(cut + "worker = 0\n").server);
  EXPECT_FALSE(fault("kind = \"kill-machine\"\nhost = \"b\"\n").server);
}

TEST(WorldFile, SaysWhatIsWrongAndWhere) {
  const std::string two = "[[switch]]\nname = \"s\"\n[[switch]]\nname = \"t\"\n";
  const std::pair<std::string, std::string> mistakes[] = {
      {"", "w.toml:1: host: there is none"},
      {kCompute, "w.toml:1: host: there is none; write a [[host]] for each"},
      {kHost, "compute: is needed"},
      {kHost + "[compute]\n", "[compute] step_ms: is needed: how long a step computes"},
      {kLeast + "mbit_per_s = -1\n",
       "w.toml:5: [[host]] mbit_per_s: -1 is out of range; allowed: from 0 to 1e+09"},
      {kLeast + "mbit_per_s = \"fast\"\n", "w.toml:5: [[host]] mbit_per_s: a number is wanted"},
      {kLeast + "mbits = 1\n", "w.toml:5: unknown key 'mbits' in [[host]]"},
      {kLeast + "workers = 1.5\n", "[[host]] workers: a whole number is wanted"},
      {kLeast + "machine = \"m\"\n", "[[host]] machine: there is no 'm'"},
      {kLeast + "[[link]]\nfrom = \"a\"\nto = \"z\"\n", "[[link]] to: there is no 'z'"},
      {kLeast + "[[link]]\nfrom = \"a\"\nto = \"a\"\n", "[[link]] to: a host has no link to itself"},
      {kLeast + "[[link]]\nfrom = \"a\"\n", "[[link]] to: is needed"},
      {kLeast + "count = 2\n[[link]]\nfrom = \"a-0\"\nto = \"a-1\"\n[[link]]\nfrom = \"a-1\"\nto = \"a-0\"\n",
       "w.toml:11: [[link]] to: there is a link between a-1 and a-0 already"},
      {kLeast + "switch = \"s\"\n", "[[host]] switch: there is no 's'"},
      {kLeast + kHost, "host: there are two of the name 'a'"},
      {kLeast + "count = 65535\n", "[[host]] count: 65535 is out of range; allowed: from 1 to 65534"},
      {kLeast + "count = 65534\nworkers = 65534\n", "[[host]] workers: there are more than 65534 of them"},
      {kLeast + two, "[[host]] switch: is needed, because there are several"},
      {kLeast + "switch = \"s\"\n[[host]]\nname = \"b\"\nswitch = \"t\"\n" + two,
       "w.toml: there is no way from host a to host b"},
      {kLeast + "[[switch]]\nname = \"s\"\nabove = \"s\"\n",
       "[[switch]] above: switches hang at each other in a circle"},
      {kLeast + "[[fault]]\nat_s = 1\nhost = \"b\"\n", "[[fault]] host: there is no 'b'; there are a"},
      {kLeast + "[[fault]]\nat_s = 1\nworker = 1\n",
       "[[fault]] worker: 1 is out of range; allowed: from 0 to 0"},
      {kLeast + "[[fault]]\nat_s = 1\n", "[[fault]] host: either a host or a worker is needed"},
      {kLeast + "[[fault]]\nworker = 0\n", "[[fault]] at_s: is needed"},
      {kLeast + "[[fault]]\nworker = 0\nat_s = 1\nkind = \"hang\"\n", "[[fault]] seconds: is needed"},
      {kLeast + "[[fault]]\nworker = 0\nat_s = 1\nkind = \"cut\"\nseconds = 0\n",
       "w.toml:9: [[fault]] seconds: must be more than 0"},
      {"[compute]\nstep_ms = 1\nlaw = \"lognorm\"\n" + kHost,
       "[compute] law: there is no 'lognorm'; there are constant, lognormal, markov, trace; did you mean "
       "lognormal?"},
      {"[compute]\nstep_ms = 1\nsigma = 1\n" + kHost, "[compute] sigma: is of another law"},
      {"[compute]\nlaw = \"trace\"\n" + kHost, "[compute] trace: is needed"},
      {"[compute]\nstep_ms = 1\nvector_ns = 0.1\n" + kHost,
       "w.toml:3: [compute] vector_ns: is of ghosts alone"},
      {"[compute]\nlaw = \"trace\"\ntrace = \"t\"\nstep_ms = 1\n" + kHost,
       "w.toml:4: [compute] step_ms: is of another law"},
      {kLeast + "[network]\nshared = 0\n", "w.toml:6: [network] shared: 0 is out of range"},
      {kLeast + "[network]\nshared = []\n", "w.toml:6: [network] shared: is empty"},
      {kLeast + "[network]\nshared = [0.5]\n", "w.toml:6: [network] shared: is to be written as [[shared]]"},
      {kLeast + "[network]\nshared = [{kb = 50}]\n", "w.toml:6: [[shared]] left: is needed"},
      {kLeast + "[network]\nshared = [{kb = 5, left = 1}, {kb = 5, left = 1}]\n",
       "w.toml:6: [[shared]] kb: must be more than in the one before"},
      {kLeast + "[network]\nretry_ms = 1\n", "w.toml:6: [network] retry_ms: has no effect without loss"},
      {kLeast + "[faults]\nhang_s = 1\n", "w.toml:6: [faults] hang_s: has no effect without hangs_per_hour"},
      {kLeast + "[[switch]]\nname = \"s\"\nup_mbit_per_s = 1\n",
       "[[switch]] up_mbit_per_s: has no effect without above"},
      {kLeast + "[network]\nwork_ns = 1\n", "w.toml:6: [network] work_ns: needs a host or a machine with"},
      {"[compute]\nlaw = \"trace\"\ntrace = \"none\"\n" + kHost,
       "w.toml:3: [compute] trace: none: cannot open this file"},
      {"[compute]\nstep_ms = 1\nahead_ms = -1\n" + kHost, "w.toml:3: [compute] ahead_ms: -1 is out of range"},
      {"[compute]\nstep_ms = 1e99\n" + kHost, "step_ms: 1e+99 is out of range; allowed: from 0 to 1e+09"},
      {kLeast + "[network]\nbyte_ns = 1e12\n", "byte_ns: 1e+12 is out of range"},
      {kLeast + "[faults]\nuntil_s = 1e12\n", "until_s: 1e+12 is out of range; allowed: from 0 to 1e+08"},
      {kLeast + "[[fault]]\nat_s = 1e11\nworker = 0\n", "at_s: 1e+11 is out of range"},
      {"[host]\nname = \"a\"\n" + kCompute, "w.toml:1: host: is to be written as [[host]]"},
      {"gradients = 1\n" + kLeast, "w.toml:1: unknown key 'gradients'"},
      {"seed = 1 2\n", "w.toml:1: not valid TOML"},
  };
  for (const auto& [toml, message] : mistakes) try {
      world_of(toml);
      ADD_FAILURE() << "is read: " << toml;
    } catch (const BadOption& e) { testing_programs::expect_has(e.what(), message); }
}

TEST(WorldFile, ReadsATraceBesideIt) {
  const testing_programs::Workplace place;
  place.write("steps", "100\n250.5\n");
  place.write("w.toml", "[compute]\nlaw = \"trace\"\ntrace = \"steps\"\n" + kHost);
  EXPECT_EQ(read_world(place.path() / "w.toml").pace.trace, (std::vector<double>{0.1, 0.2505}));
  place.write("steps", "100\r\n\r\n250.5\r\n\n");
  EXPECT_EQ(read_world(place.path() / "w.toml").pace.trace, (std::vector<double>{0.1, 0.2505}));
  const std::pair<std::string, std::string> bad[] = {
      {"100\n\nslow\n", "steps:3: 'slow' is not a time in milliseconds"},
      {"\x1b[2J\xFF" + std::string(200, 'x'),
       "steps:1: '\\x1b[2J\\xff" + std::string(35, 'x') + "...' is not a time in milliseconds"}};
  for (const auto& [lines, message] : bad) try {
      place.write("steps", lines);
      read_world(place.path() / "w.toml");
      ADD_FAILURE() << "is read: " << lines;
    } catch (const BadOption& e) { testing_programs::expect_has(e.what(), message); }
}

}  // namespace
}  // namespace skein::apps
