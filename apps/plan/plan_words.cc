// The plan as a table for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "apps/base/printable.h"
#include "apps/config/predicted.h"
#include "apps/plan/plan.h"
#include "apps/report/progress.h"

namespace skein::apps {
namespace {

std::string probed_in_words(const Probed& p) {
  const auto by_step = [](const ProbedWorker& a, const ProbedWorker& b) { return a.step() < b.step(); };
  const auto [least, most] = std::minmax_element(p.workers.begin(), p.workers.end(), by_step);
  const std::string short_one = fmt::format("{:.1f} ms", 1e3 * least->step()),
                    long_one = fmt::format("{:.1f} ms", 1e3 * most->step());
  std::string s = "a step computes for " + short_one;
  if (most->step() > 1.05 * least->step() && long_one != short_one)
    s += text(" to ", long_one, " (", most->host, ')');
  if (most->crowded > 1.05) s += fmt::format(", {:.1f} times as long as alone on its machine", most->crowded);
  if (p.between.empty()) return s + "; all workers are on one host\n";
  const WorldFile w = world_of(p);
  double least_rate = 1e300, most_rate = 0;
  for (const auto& h : w.site.hosts)
    least_rate = std::min(least_rate, h.rate), most_rate = std::max(most_rate, h.rate);
  s += fmt::format("; {} hosts with links of {:.0f}", w.site.hosts.size(), least_rate * 8e-6);
  if (most_rate > 1.05 * least_rate) s += fmt::format(" to {:.0f}", most_rate * 8e-6);
  s += " Mbit/s";
  const auto& points = w.site.shared.points;
  if (std::any_of(points.begin(), points.end(), [](const auto& one) { return one.left < 0.98; })) {
    std::string shares, sizes;
    for (const auto& one : points) {
      shares += fmt::format("{}{:.0f}", shares.empty() ? "" : ", ", 100 * one.left);
      sizes += fmt::format("{}{:.0f}", sizes.empty() ? "" : ", ", one.bytes / 1e3);
    }
    s += text(", of which ", shares, " % are left when messages of ", sizes, " kB share them");
  }
  if (w.site.work > 0) s += fmt::format("; messages cost {:.2g} ns of a core a byte", 1e9 * w.site.work);
  if (w.site.work_one_way > w.site.work) s += fmt::format(", one way {:.2g}", 1e9 * w.site.work_one_way);
  s += '\n';
  for (const auto& l : w.site.links)
    if (l.rate > 0)
      s += fmt::format("the link from {} to {} has only {:.0f} Mbit/s\n", w.site.hosts[size_t(l.a)].name,
                       w.site.hosts[size_t(l.b)].name, l.rate * 8e-6);
  return s;
}

// Two spaces stand in front of a setting, and nowhere else in a row but between its figures.
std::string row_in_words(const Plan& p, const Forecast& f, size_t limits) {
  const double steps = f.images_per_second / double(p.probed.global_batch);  // a second
  return fmt::format("{:>9} {:>8.0f}% {:>7} {:>9.2f} {:>9.3g} {:>9.3g} {:>9}  {:<{}}  {}{}{}\n",
                     format_speed(f.images_per_second), 100 * f.waiting,
                     f.hidden ? fmt::format("{:.0f}%", 100 * *f.hidden) : "-", f.bytes_per_step * steps / 1e6,
                     hours_of_epoch(p, f), f.bytes_per_step * double(p.probed.steps_per_epoch) / 1e9,
                     f.accuracy ? fmt::format("{:+.2f}", *f.accuracy) : "-", f.limit, limits,
                     f.what.algorithm, f.what.flags.empty() ? "" : " ", f.what.flags);
}

}  // namespace

std::string command_of(const Plan& p, const Forecast& f) {
  const Predicted predicted = {f.images_per_second, f.hidden, f.bytes_per_step};
  return text(p.command, " --algorithm ", f.what.algorithm, f.what.flags.empty() ? "" : " ", f.what.flags,
              " --predicted ", predicted.words());
}

const Forecast& to_start(const Plan& p) {
  constexpr double kAlike = 0.97;
  const Forecast* best = &p.forecasts.front();
  for (const Forecast& f : p.forecasts) {
    if (f.images_per_second < kAlike * p.forecasts.front().images_per_second) break;
    if (f.accuracy && (!best->accuracy || *f.accuracy > *best->accuracy)) best = &f;
  }
  return *best;
}

std::optional<Fewer> faster_alone(const Plan& p) {
  const Fewer one = by_one_worker(p.probed), host = by_one_host(p.probed);
  const double best = p.forecasts.front().images_per_second;
  if (one.images_per_second >= best) return one;
  if (p.probed.fronts.size() > 1 && host.images_per_second >= best) return host;
  return {};
}

std::string command_of(const Plan& p, const Fewer& f) {
  std::string s = text(p.fewer, " --workers ", f.workers);
  if (const int64_t all = p.config.global_batch; all > 0)  // of which these take their share
    s += text(" --batch-size ", all / int64_t(p.probed.workers.size()));
  if (f.workers > 1) return s + " --algorithm allreduce";  // their messages were not simulated
  return s + " --algorithm sgd --predicted " + Predicted{f.images_per_second, {}, {}}.words();
}

std::string verdict(const Plan& p) {
  const Forecast& best = p.forecasts.front();
  const auto alone = faster_alone(p);
  if (alone && alone->workers == 1)
    return fmt::format("One worker alone is faster: {} images/s, and {} workers by {} at best {}",
                       format_speed(alone->images_per_second), p.probed.workers.size(), best.what.algorithm,
                       format_speed(best.images_per_second));
  if (alone)
    return fmt::format(
        "One machine is faster: the workers of one host compute {} images/s, and {} hosts by {} at best {}",
        format_speed(alone->images_per_second), p.probed.fronts.size(), best.what.algorithm,
        format_speed(best.images_per_second));
  return fmt::format("Fastest: {}{}{}, {} images/s, {:.2f} times one worker alone", best.what.algorithm,
                     best.what.flags.empty() ? "" : " ", best.what.flags,
                     format_speed(best.images_per_second),
                     best.images_per_second / by_one_worker(p.probed).images_per_second);
}

std::vector<Start> starts(const Plan& p) {
  std::vector<Start> all;
  const auto alone = faster_alone(p);
  const std::string where = alone && p.probed.fronts.size() > 1 ? " on " + alone->host : "";
  if (alone) all.push_back({"", "to start that" + where, command_of(p, *alone)});
  const Forecast &best = p.forecasts.front(), &start = to_start(p);
  const std::string why =
      &start == &best ? ""
                      : text("within 3 % of ", best.what.algorithm,
                             ", and the most accurate where that was measured: ", start.what.algorithm);
  const std::string what =
      alone ? text("to start all ", p.probed.workers.size(), " workers nevertheless") : "to start it";
  all.push_back({why, what, command_of(p, start)});
  return all;
}

double hours_of_epoch(const Plan& p, const Forecast& f) {
  return double(p.probed.steps_per_epoch * p.probed.global_batch) / f.images_per_second / 3600;
}

std::string in_words(const Plan& p) {
  std::string s = probed_in_words(p.probed);
  s += fmt::format("{} simulated in {:.1f} s; best first\n\n",
                   counted(int64_t(p.forecasts.size()), "setting"), p.seconds);
  size_t limits = std::string("limited by").size();
  for (const Forecast& f : p.forecasts) limits = std::max(limits, f.limit.size());
  s +=
      fmt::format(" images/s  waiting  hidden  MB/s out   hours/ep    GB/ep  accuracy  {:<{}}  --algorithm\n",
                  "limited by", limits);
  for (const Forecast& f : p.forecasts) s += row_in_words(p, f, limits);
  for (const std::string& line : p.refused) s += "not possible here: " + line + '\n';
  s += "\nwaiting: of the worker that waits most. MB/s out and GB an epoch: sent by a worker. accuracy: "
       "points to allreduce after\n"
       "one epoch of resnet20 on Fashion-MNIST by 4 workers (bench/RESULTS.md), with the flags of "
       "bench/compare.toml; not of this model\n\n";
  s += verdict(p) + '\n';
  for (const Start& one : starts(p))
    s += text(one.why, one.why.empty() ? "" : "\n", one.what, ":\n  ", one.command, '\n');
  return s;
}

}  // namespace skein::apps
