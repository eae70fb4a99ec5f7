// Turns traces and epochs into lines and JSON.
#include "apps/gossip/gossip_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/base/printable.h"
#include "apps/launch/refused.h"
#include "comm/topology/contraction.h"

namespace skein::apps {
namespace {

constexpr double kRounding = 1e-6;            // of the first distance: below, fp32 is what is measured,
constexpr double kRoundingOfDoubles = 1e-14;  // or float64
constexpr size_t kPatience = 50;              // gossips without progress before the comparison ends
constexpr int64_t kMostEntries = 2 << 20;     // in all products of mixing matrices together

std::string ranks(const std::vector<comm::Rank>& all) {
  if (all.size() > 8) return fmt::format("{} workers", all.size());
  std::string s;
  for (const comm::Rank r : all) s += (s.empty() ? "" : " ") + std::to_string(r);
  return (all.size() == 1 ? "worker " : "workers ") + s;
}

// "mean0.npy" or "mean0.npy, mean2.npy ... mean9.npy": the results of the workers that are left at the end.
std::string outputs(const GossipFlags& f, const std::vector<comm::Rank>& living) {
  constexpr size_t kNamed = 4;
  std::string s;
  for (size_t i = 0; i < living.size(); ++i) {
    const bool last = i + 1 == living.size();
    if (i + 1 >= kNamed && !last) continue;
    s += (i == 0 ? "" : last && i >= kNamed ? " ... " : ", ") + file_of(f.output, living[i]);
  }
  return s;
}

double per_gossip(double factor, int64_t gossips) {
  return factor > 0 ? std::pow(factor, 1.0 / double(gossips)) : 0;
}

// Compares the gossips until the distance no longer shrinks, or is only the rounding error of the first one.
void compare(EpochStory& e, double first, double rounding) {
  const double start = e.points.empty() ? 0 : e.points[0].rms;
  if (!(start > rounding * first)) return;
  size_t best = 0;
  for (size_t q = 1; q < e.points.size() && q - best < kPatience; ++q) {
    if (e.points[q].rms < e.points[best].rms) best = q;
    if (e.points[q].rms > rounding * first) continue;
    if (q > 1) best = q - 1;
    break;
  }
  if (best == 0) return;
  e.gossips = int64_t(best);
  e.measured = e.points[best].rms > rounding * first ? per_gossip(e.points[best].rms / start, e.gossips) : 0;
  if (best < e.theory.size()) e.theoretical = per_gossip(e.theory[best], e.gossips);
}

// After how many gossips the product of the matrices is exactly the mean; 0 means never.
int64_t exact_after(const std::vector<double>& theory) {
  for (size_t q = 1; q < theory.size(); ++q)
    if (theory[q] == 0) return theory[q - 1] > kRounding ? int64_t(q) : 0;
  return 0;
}

std::string contraction_in_words(const EpochStory& e) {
  if (e.gossips == 0) return "";
  std::string s =
      fmt::format("contraction per round over {}: measured {:.4f}", counted(e.gossips, "round"), e.measured);
  if (!e.theory.empty())
    s += fmt::format(", theoretical {:.4f} at most (second largest singular value)", e.theoretical);
  if (const int64_t exact = exact_after(e.theory)) s += fmt::format("; the mean is exact after {}", exact);
  return s + '\n';
}

std::string mass_in_words(const EpochStory& e, bool last) {
  if (e.doubtful)
    return fmt::format("mass of {}: broke off before the first round\n", ranks(e.epoch.members));
  const comm::Mass &a = e.epoch.begin, &b = e.epoch.end;
  std::string s = fmt::format("mass of {}: sum of w {:.9g} -> {:.9g}, sum of X {:.9g} -> {:.9g}",
                              ranks(e.epoch.members), a.w, b.w, a.x, b.x);
  if (!last) s += " with the living";
  if (!last && a.w - b.w > 1e-9) s += fmt::format(", w {:.9g} went with the lost", a.w - b.w);
  return s + '\n';
}

Json story_in_json(const EpochStory& e) {
  Json j = {{"from_round", e.epoch.from},
            {"members", e.epoch.members},
            {"mass_begin", {{"w", e.epoch.begin.w}, {"x", e.epoch.begin.x}}},
            {"mass_end", {{"w", e.epoch.end.w}, {"x", e.epoch.end.x}}},
            {"gossips_compared", e.gossips},
            {"contraction", {{"measured", e.measured}}},
            {"trace", Json::array()}};
  if (!e.theory.empty()) j["contraction"]["theoretical"] = e.theoretical, j["theory"] = e.theory;
  for (const auto& p : e.points)
    j["trace"].push_back({{"round", p.round}, {"rms", p.rms}, {"worst", p.worst}});
  return j;
}

std::string size_of_bytes(int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} bytes", bytes);
}

// A table of numbers, ranks by ranks.
template <class Cell>
std::string matrix(int n, Cell cell) {
  std::string s = "      ";
  for (int b = 0; b < n; ++b) s += fmt::format("{:>10}", b);
  for (int a = 0; a < n; ++a) {
    s += fmt::format("\n{:>6}", a);
    for (int b = 0; b < n; ++b)
      s += a == b ? fmt::format("{:>10}", "-") : fmt::format("{:>#10.3g}", cell(a, b));
  }
  return s + '\n';
}

}  // namespace

std::vector<EpochStory> epoch_stories(const GossipFlags& f, const comm::AveragingResult& r, bool doubles) {
  std::vector<EpochStory> all;
  for (const comm::AveragingEpoch& epoch : r.epochs) {
    EpochStory e{.epoch = epoch, .points = {}, .theory = {}};
    e.doubtful = e.epoch.begin.w == 0;
    for (const auto& p : r.trace)
      if (p.epoch == e.epoch.number) e.points.push_back(p);
    const int n = int(e.epoch.members.size());
    const int64_t gossips = int64_t(e.points.size()) - 1;
    if (f.algorithm != "allreduce" && gossips > 0)
      e.theory = comm::contraction_curve(*graph_over(f, n, epoch.number),
                                         std::min<int64_t>(gossips, kMostEntries / (int64_t(n) * n)));
    const EpochStory& first = all.empty() || all[0].points.empty() ? e : all[0];
    compare(e, first.points.empty() ? 0 : first.points[0].rms, doubles ? kRoundingOfDoubles : kRounding);
    all.push_back(std::move(e));
  }
  return all;
}

std::string in_words(const GossipFlags& f, const GossipStory& s) {
  const comm::AveragingResult& r = *s.result;
  std::string out = fmt::format(
      "{}{} averaged between {} by {}{} in {}, {:.3f} s{}; largest distance from the mean {:.3g}\n",
      counted(s.elements, "number"), s.doubles ? " of float64" : "",
      counted(int64_t(s.living.size()), "worker"), f.algorithm,
      f.algorithm == "allreduce" ? "" : " over " + f.topology, counted(r.rounds, "round"), r.seconds,
      r.stopped ? ", stopped early" : "", r.error);
  if (!f.output.empty()) out += "result: " + outputs(f, s.living) + '\n';
  for (size_t i = 0; i < s.epochs.size(); ++i) {
    out += contraction_in_words(s.epochs[i]);
    out += mass_in_words(s.epochs[i], i + 1 == s.epochs.size());
  }
  if (s.skipped > 0)
    out += fmt::format("{} lost on the way; the mass is missing above\n", counted(s.skipped, "share"));
  return out;
}

Json in_json(const GossipFlags& f, const GossipStory& s) {
  const comm::AveragingResult& r = *s.result;
  Json j = {{"version", SKEIN_VERSION},
            {"algorithm", f.algorithm},
            {"workers", s.workers},
            {"living", s.living},
            {"topology", f.topology},
            {"elements", s.elements},
            {"type", s.doubles ? "float64" : "float32"},
            {"rounds", r.rounds},
            {"error", r.error},
            {"stopped", r.stopped},
            {"seconds", r.seconds},
            {"weights", s.weights},
            {"bytes_sent", s.bytes_sent},
            {"lost_shares", s.skipped},
            {"transport", s.ways},
            {"epochs", Json::array()}};
  j.update(to_json(s.refused));
  for (const EpochStory& e : s.epochs) j["epochs"].push_back(story_in_json(e));
  if (f.algorithm == "allreduce") j.erase("topology");
  return j;
}

std::string in_words(const std::vector<comm::LinkTimes>& all, int n, const std::string& ways) {
  std::string out = ways;
  for (const comm::LinkTimes& t : all) {
    const bool latency = t.bytes <= 4096;
    out += latency ? fmt::format("\nlatency, microseconds one way: half the median of {} round trips of {}\n",
                                 t.repeats, size_of_bytes(t.bytes))
                   : fmt::format("\nbandwidth, GB/s one way: from the median of {} round trips of {}\n",
                                 t.repeats, size_of_bytes(t.bytes));
    out += matrix(n, [&](int a, int b) {
      const double s = t.seconds[size_t(a * n + b)];
      return latency ? s * 1e6 : double(t.bytes) / s / 1e9;
    });
  }
  return out;
}

Json in_json(const std::vector<comm::LinkTimes>& all, int n, const std::string& ways) {
  Json sizes = Json::array();
  for (const comm::LinkTimes& t : all) {
    Json seconds = Json::array();
    for (int a = 0; a < n; ++a)
      seconds.push_back(std::vector<double>(t.seconds.begin() + a * n, t.seconds.begin() + (a + 1) * n));
    sizes.push_back({{"bytes", t.bytes}, {"repeats", t.repeats}, {"seconds", seconds}});
  }
  return {{"version", SKEIN_VERSION},
          {"workers", n},
          {"statistic", "half the median round trip"},
          {"sizes", sizes},
          {"transport", ways}};
}

}  // namespace skein::apps
