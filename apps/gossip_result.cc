// From traces and epochs to lines and JSON.
#include "apps/gossip_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/contraction.h"

namespace skein::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRounding = 1e-6;         // of the first distance: below, fp32 is what is measured
constexpr int64_t kMostEntries = 2 << 20;  // of products of mixing matrices, all gossips together

std::string ranks(const std::vector<comm::Rank>& all) {
  if (all.size() > 8) return fmt::format("{} workers", all.size());
  std::string s;
  for (const comm::Rank r : all) s += (s.empty() ? "" : " ") + std::to_string(r);
  return (all.size() == 1 ? "worker " : "workers ") + s;
}

double per_gossip(double factor, int64_t gossips) {
  return factor > 0 ? std::pow(factor, 1.0 / double(gossips)) : 0;
}

void compare(EpochStory& e) {
  const double start = e.points.empty() ? 0 : e.points[0].rms;
  if (!(start > 0)) return;
  for (size_t q = 1; q < e.points.size(); ++q) {
    e.gossips = int64_t(q);
    e.measured = e.points[q].rms < kRounding * start ? 0 : per_gossip(e.points[q].rms / start, e.gossips);
    if (e.measured == 0) break;  // the last that counts: what follows is rounding
  }
  if (e.measured == 0 && e.gossips > 1) {
    --e.gossips;
    e.measured = per_gossip(e.points[size_t(e.gossips)].rms / start, e.gossips);
  }
  if (size_t(e.gossips) < e.theory.size() && e.gossips > 0)
    e.theoretical = per_gossip(e.theory[size_t(e.gossips)], e.gossips);
}

std::string contraction_in_words(const EpochStory& e) {
  if (e.gossips == 0) return "";
  std::string s = fmt::format("contraction per round over {} round{}: measured {:.4f}", e.gossips,
                              e.gossips == 1 ? "" : "s", e.measured);
  if (!e.theory.empty())
    s += fmt::format(", theoretical {:.4f} at most (second largest singular value)", e.theoretical);
  const auto exact = std::find(e.theory.begin(), e.theory.end(), 0.0);
  if (exact != e.theory.end() && e.theory.size() > 1)
    s += fmt::format("; the mean is exact after {}", exact - e.theory.begin());
  return s + '\n';
}

std::string mass_in_words(const EpochStory& e, bool last) {
  if (e.doubtful)
    return fmt::format("mass of {}: broke off before the first round\n", ranks(e.epoch.members));
  const comm::Mass &a = e.epoch.begin, &b = e.epoch.end;
  std::string s = fmt::format("mass of {}: sum of w {:.9g} -> {:.9g}, sum of X {:.9g} -> {:.9g}",
                              ranks(e.epoch.members), a.w, b.w, a.x, b.x);
  if (!last) s += fmt::format(" with the living, w {:.9g} went with the lost", a.w - b.w);
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
      s += a == b ? fmt::format("{:>10}", "-") : fmt::format("{:>10.4g}", cell(a, b));
  }
  return s + '\n';
}

}  // namespace

std::vector<EpochStory> epoch_stories(const GossipFlags& f, const comm::AveragingResult& r) {
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
    compare(e);
    all.push_back(std::move(e));
  }
  return all;
}

std::string in_words(const GossipFlags& f, const GossipStory& s) {
  const comm::AveragingResult& r = *s.result;
  std::string out = fmt::format(
      "{} numbers averaged between {} workers by {}{} in {} rounds, {:.3f} s{}; largest distance from the "
      "mean {:.3g}\n",
      s.elements, s.living.size(), f.algorithm, f.algorithm == "allreduce" ? "" : " over " + f.topology,
      r.rounds, r.seconds, r.stopped ? ", stopped early" : "", r.error);
  for (size_t i = 0; i < s.epochs.size(); ++i) {
    out += contraction_in_words(s.epochs[i]);
    out += mass_in_words(s.epochs[i], i + 1 == s.epochs.size());
  }
  if (s.skipped > 0)
    out += fmt::format("{} shares were lost on the way; their mass is missing above\n", s.skipped);
  return out;
}

Json in_json(const GossipFlags& f, const GossipStory& s) {
  const comm::AveragingResult& r = *s.result;
  Json j = {{"algorithm", f.algorithm}, {"workers", s.workers},       {"living", s.living},
            {"topology", f.topology},   {"elements", s.elements},     {"rounds", r.rounds},
            {"error", r.error},         {"stopped", r.stopped},       {"seconds", r.seconds},
            {"weights", s.weights},     {"bytes_sent", s.bytes_sent}, {"lost_shares", s.skipped},
            {"transport", s.ways},      {"epochs", Json::array()}};
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
                   : fmt::format("\nbandwidth, MB/s one way: from the median of {} round trips of {}\n",
                                 t.repeats, size_of_bytes(t.bytes));
    out += matrix(n, [&](int a, int b) {
      const double s = t.seconds[size_t(a * n + b)];
      return latency ? s * 1e6 : double(t.bytes) / s / 1e6;
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
  return {{"workers", n}, {"statistic", "half the median round trip"}, {"sizes", sizes}, {"transport", ways}};
}

}  // namespace skein::apps
