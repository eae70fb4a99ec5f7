// Ghost runs of some rounds of each algorithm, and of the best ones in worlds that lack one bound.
#include "apps/plan/forecast.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "apps/command_line/command_line.h"
#include "apps/config/algorithm_values.h"
#include "apps/config/reconcile.h"
#include "apps/flat/flat_run.h"
#include "apps/launch/launch.h"
#include "engine/words/find_row.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

constexpr int64_t kSteps = 60, kRounds = 3;
// Of all workers of an asynchronous algorithm: an exchange can take ten steps, and who waits is chance.
constexpr int64_t kOfAsynchronous = 1920;
constexpr double kMatters = 1.05;  // a bound that costs less limits nothing

// Of candidates.def. Without flags it is not tried.
struct Row {
  std::string algorithm;
  std::optional<std::string> flags;
};
const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#define CANDIDATE(algorithm, flags) {algorithm, flags},
#define SKIPPED(algorithm) {algorithm, {}},
#include "apps/plan/candidates.def"
#undef SKIPPED
#undef CANDIDATE
  };
  return all;
}

// Points to allreduce in test accuracy: resnet20 after an epoch of Fashion-MNIST, 4 workers (bench/compare).
std::optional<double> measured_accuracy(const std::string& algorithm) {
  static const std::map<std::string, double> all = {
      {"allreduce", 0},
#include "measured_accuracy.inc"
  };
  const auto at = all.find(algorithm);
  return at == all.end() ? std::nullopt : std::optional(at->second);
}

void assign_words(Config& c, const std::string& given) {
  std::istringstream words(given);
  for (std::string word, value; words >> word;) {
    const Flag* f = find_flag(flags(), word.substr(2));
    if (!f)  // --no-final-average
      f = find_flag(flags(), word.substr(5)), value = "false";
    else if (f->kind == Flag::kSwitch)
      value = "true";
    else
      words >> value;
    assign(c, *f, value, {Source::kCommandLine, word});
  }
}

// The run that a candidate is, in so many steps.
Config config_of(const Config& asked, const Candidate& what, int workers, int64_t steps) {
  Config c = asked;
  for (const Flag& f : flags())  // those of another algorithm
    if (!f.algorithms.empty()) c.of_algorithm.erase(f.name), c.origins.erase(f.name);
  c.algorithm = what.algorithm, c.wire = "fp32";
  assign_words(c, what.flags);
  reconcile(c, flags());  // as the printed command will be
  c.workers = workers, c.steps = steps, c.epochs = 0;
  c.elastic = "off", c.wait = "forever";
  settle_algorithm(c, workers);
  return c;
}

// Some rounds of a periodic algorithm, or as many steps as even out.
int64_t steps_of(const Config& c, int workers) {
  const auto tau = c.of_algorithm.find("tau");
  const int64_t period = tau == c.of_algorithm.end() ? 1 : std::stoll(tau->second);
  const bool many = workers > 16;
  const int64_t even =
      optim::strategy_row(c.algorithm).asynchronous() ? std::max(kSteps, kOfAsynchronous / workers) : kSteps;
  return std::max<int64_t>(period * (many ? 1 : kRounds), many ? kSteps / 4 : even) / period * period;
}

double speed_in(const WorldFile& world, const Config& c) {
  return ghost_figures(c, job_options(c), world).images_per_second;
}

std::string slowest_link(const WorldFile& w) {
  const auto& links = w.site.links;
  const auto slower = [](const auto& a, const auto& b) {
    return a.rate > 0 && (b.rate == 0 || a.rate < b.rate);
  };
  const auto& hosts = w.site.hosts;
  if (hosts.size() < 2) return "messages within the host";
  if (const auto at = std::min_element(links.begin(), links.end(), slower); at != links.end() && at->rate > 0)
    return text("link ", hosts[size_t(at->a)].name, " to ", hosts[size_t(at->b)].name);
  const auto by_rate = [](const auto& a, const auto& b) { return a.rate < b.rate; };
  const auto [least, most] = std::minmax_element(hosts.begin(), hosts.end(), by_rate);
  return least->rate < 0.85 * most->rate ? text("network of ", least->name) : std::string("network");
}

std::string slowest_host(const WorldFile& w) {
  const auto [least, most] = std::minmax_element(w.speeds.begin(), w.speeds.end());
  return *least < 0.9 * *most ? text("straggler ", w.site.hosts[size_t(least - w.speeds.begin())].name)
                              : std::string("uneven steps");
}

// Of the host whose loader its workers wait for longest.
std::string slowest_loader(const Probed& p) {
  const auto by_loading = [](const auto& a, const auto& b) { return a.loading < b.loading; };
  return text("loader of ", std::max_element(p.workers.begin(), p.workers.end(), by_loading)->host);
}

// What the same run would gain most without.
std::string limit_of(const Forecast& f, const Config& c, const Probed& p, const WorldFile& world) {
  Probed loaded = p;
  for (ProbedWorker& w : loaded.workers) w.loading = 0;
  const std::pair<double, std::string> gains[] = {
      {speed_in(without_network_bounds(world), c), slowest_link(world)},
      {speed_in(without_stragglers(world), c), slowest_host(world)},
      {speed_in(world_of(loaded), c), slowest_loader(p)}};
  const auto& most = *std::max_element(std::begin(gains), std::end(gains));
  return most.first > kMatters * f.images_per_second ? most.second : "computing";
}

Forecast forecast(const Candidate& what, const Config& c, const Probed& p, const WorldFile& world) {
  const FlatFigures f = ghost_figures(c, job_options(c), world);
  Forecast out{.what = what, .images_per_second = f.images_per_second};
  out.waiting = f.waiting, out.hidden = f.hidden, out.bytes_per_step = f.bytes_per_step;
  out.accuracy =
      what.flags.find("--wire") == std::string::npos ? measured_accuracy(what.algorithm) : std::nullopt;
  out.limit = limit_of(out, c, p, world);
  return out;
}

}  // namespace

std::vector<Candidate> candidates(const Config& asked) {
  std::vector<Candidate> all;
  for (const Row& row : rows())
    if (row.flags) all.push_back({row.algorithm, *row.flags});
  for (const optim::StrategyRow& row : optim::strategies())
    if (std::none_of(rows().begin(), rows().end(), [&](const Row& r) { return r.algorithm == row.name; }))
      all.push_back({row.name, ""});
  const std::string own = optim::strategy_row(asked.algorithm).name;
  std::string own_flags;
  for (const Flag& f : flags())
    if (const std::string value = value_of(asked, f);
        (!f.algorithms.empty() || (f.name == "wire" && value != "fp32")) &&
        asked.origin(f.name).source > Source::kDefault)
      own_flags += text(own_flags.empty() ? "" : " ", value == "false" ? "--no-" : "--", f.name,
                        f.kind == Flag::kSwitch ? "" : " " + value);
  const bool there = std::any_of(all.begin(), all.end(), [&](const Candidate& one) {
    return one.algorithm == own && one.flags == own_flags;
  });
  const bool given = asked.origin("algorithm").source > Source::kDefault;
  if (given && !there && own != "sgd" && own != "lsgd") all.push_back({own, own_flags});
  return all;
}

std::vector<Forecast> forecasts(const Config& asked, const Probed& p, const std::vector<Candidate>& all_tried,
                                std::vector<std::string>& refused) {
  const WorldFile world = world_of(p);
  const int workers = world.site.workers();
  std::vector<Forecast> all;
  for (const Candidate& what : all_tried) try {
      const Config once = config_of(asked, what, workers, kSteps);
      const Config c = config_of(asked, what, workers, steps_of(once, workers));
      all.push_back(forecast(what, c, p, world));
    } catch (const Error& e) {  // one that fails in this world, too: the probe took longer than all of this
      refused.push_back(text(what.algorithm, what.flags.empty() ? "" : " ", what.flags, ": ", e.what()));
    }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.images_per_second > b.images_per_second; });
  return all;
}

namespace {

bool is_slower(const Fewer& a, const Fewer& b) { return a.images_per_second < b.images_per_second; }

}  // namespace

Fewer by_one_worker(const Probed& p) {
  const double images = double(p.global_batch) / double(p.workers.size());
  std::vector<Fewer> all;
  for (const ProbedWorker& w : p.workers) all.push_back({images / (w.step() / w.crowded), 1, w.host});
  return *std::max_element(all.begin(), all.end(), is_slower);
}

Fewer by_one_host(const Probed& p) {
  const double images = double(p.global_batch) / double(p.workers.size());
  std::map<std::string, Fewer> hosts;
  for (const ProbedWorker& w : p.workers) {
    Fewer& f = hosts[w.network];
    f.images_per_second += images / w.step(), ++f.workers, f.host = w.host;
  }
  std::vector<Fewer> all;
  for (const auto& [network, f] : hosts) all.push_back(f);
  return *std::max_element(all.begin(), all.end(), is_slower);
}

}  // namespace skein::apps
