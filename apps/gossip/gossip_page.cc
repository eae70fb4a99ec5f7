// The page of gossip_avg: tiles, one logarithmic picture, the mass law as a table. The style
// is that of report.html.
#include "apps/gossip/gossip_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/base/printable.h"
#include "apps/report/report_page.h"

namespace skein::apps {
namespace {

constexpr double kWidth = 1100, kHeight = 420, kLeft = 64, kRight = 16, kTop = 14, kBottom = 36;
constexpr size_t kMostPoints = 1500;  // in a curve: a screen could not show more

// Maps rounds and errors, which are powers of ten, to positions in the picture.
struct Frame {
  double rounds = 1, low = -1, high = 0;
  double x(double round) const { return kLeft + (kWidth - kLeft - kRight) * round / rounds; }
  double y(double error) const {
    const double power = error > 0 ? std::clamp(std::log10(error), low, high) : low;
    return kTop + (kHeight - kTop - kBottom) * (high - power) / (high - low);
  }
};

Frame frame_of(const GossipFlags& f, const GossipStory& s) {
  double least = f.tolerance > 0 ? f.tolerance : INFINITY, most = 0;
  Frame frame;
  for (const EpochStory& e : s.epochs)
    for (const auto& p : e.points) {
      most = std::max(most, p.worst);
      if (p.rms > 0) least = std::min(least, p.rms);
      frame.rounds = std::max(frame.rounds, double(p.round));
    }
  if (most > 0) {
    frame.high = std::ceil(std::log10(most) + 1e-9);
    frame.low = std::min(frame.high - 1, std::floor(std::log10(std::min(least, most))));
  }
  return frame;
}

std::string line(const std::string& name, const std::string& tone, const std::string& more,
                 const std::vector<std::pair<double, double>>& points) {
  std::string d;
  const size_t step = points.size() / kMostPoints + 1;
  for (size_t i = 0; i < points.size(); ++i)
    if (i % step == 0 || i + 1 == points.size())
      d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", points[i].first, points[i].second);
  return fmt::format("<path class=\"curve\" data-line=\"{}\" style=\"stroke:{}{}\" d=\"{}\"/>\n", name, tone,
                     more, d);
}

std::string axes(const Frame& f) {
  std::string s;
  const int step = std::max(1, int(std::ceil((f.high - f.low) / 10)));
  for (int power = int(f.low); power <= int(f.high); power += step) {
    const double y = f.y(std::pow(10.0, power));
    s += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">1e{5}</text>\n",
        kLeft, kWidth - kRight, y, kLeft - 8, y + 4, power);
  }
  double unit = std::pow(10.0, std::floor(std::log10(std::max(1.0, f.rounds / 4))));
  while (f.rounds / unit > 10) unit *= f.rounds / unit > 20 ? 5 : 2;
  for (double round = 0; round <= f.rounds; round += unit)
    s += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", f.x(round),
                     kHeight - 14, round);
  return s +
         fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">rounds</text>\n", kWidth - kRight, kHeight);
}

std::string picture(const GossipFlags& flags, const GossipStory& s) {
  const Frame f = frame_of(flags, s);
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"distance from the mean over the rounds\">\n",
      kWidth, kHeight);
  svg += axes(f);
  if (flags.tolerance > 0)
    svg += fmt::format(
        "<line class=\"mark\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\">tolerance of the largest distance</text>\n",
        kLeft, kWidth - kRight, f.y(flags.tolerance), kLeft + 6, f.y(flags.tolerance) - 5);
  for (const EpochStory& e : s.epochs) {
    if (e.points.empty()) continue;
    const double from = double(e.points[0].round), start = e.points[0].rms;
    std::vector<std::pair<double, double>> measured, largest, theory;
    for (const auto& p : e.points) {
      measured.emplace_back(f.x(double(p.round)), f.y(p.rms));
      largest.emplace_back(f.x(double(p.round)), f.y(p.worst));
    }
    for (size_t q = 0; q < e.theory.size(); ++q) {
      theory.emplace_back(f.x(from + double(q)), f.y(start * e.theory[q]));
      if (start * e.theory[q] < std::pow(10.0, f.low)) break;  // below the picture
    }
    if (from > 0)
      svg += fmt::format(
          "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
          "<text x=\"{3:.1f}\" y=\"{4}\">{5} left</text>\n",
          f.x(from), kTop, kHeight - kBottom, f.x(from) + 5, kTop + 12, e.epoch.members.size());
    if (theory.size() > 1) svg += line("theory", "var(--c1)", ";stroke-dasharray:6 5", theory);
    svg += line("measured", "var(--c0)", "", measured);
    svg += line("largest", "var(--c2)", "", largest);
  }
  return svg + "</svg>\n";
}

std::string tiles(const GossipStory& s) {
  const comm::AveragingResult& r = *s.result;
  std::string out = tile(fmt::format("{:.3g}", r.error), "largest distance from the mean") +
                    tile(std::to_string(r.rounds), "rounds") +
                    tile(fmt::format("{} of {}", s.living.size(), s.workers), "workers at the end") +
                    tile(fmt::format("{:.3f} s", r.seconds), "of averaging");
  const EpochStory& e = s.epochs.back();
  out += tile(fmt::format("{:.4f}", e.measured), "contraction per round, measured");
  if (!e.theory.empty()) out += tile(fmt::format("{:.4f}", e.theoretical), "at most, in theory");
  return out;
}

std::string mass_table(const GossipStory& s) {
  std::string rows;
  for (size_t i = 0; i < s.epochs.size(); ++i) {
    const comm::AveragingEpoch& e = s.epochs[i].epoch;
    rows += fmt::format(
        "<tr><td>{} workers from round {}</td><td>sum of w {:.9g} \u2192 {:.9g}, sum of X {:.9g} \u2192 "
        "{:.9g}{}</td></tr>\n",
        e.members.size(), e.from, e.begin.w, e.end.w, e.begin.x, e.end.x,
        i + 1 < s.epochs.size() ? ", held by the living when it broke off" : "");
  }
  if (s.refused.sum() > 0) rows += "<tr><td>refused on the way</td><td>" + s.refused.words() + "</td></tr>\n";
  return "<section class=\"pair\"><div class=\"card\"><h2>The mass law</h2><table>" + rows +
         "</table></div></section>\n";
}

}  // namespace

std::string gossip_page(const GossipFlags& f, const GossipStory& s) {
  const std::string title = counted(s.elements, "number") + " averaged by " + f.algorithm;
  const std::string sub = f.algorithm == "allreduce"
                              ? ""
                              : fmt::format("over {}, {} workers", escape_html(f.topology), s.workers);
  const std::string header = std::string("<span class=\"chip ") +
                             (s.result->stopped ? "interrupted\">stopped early" : "finished\">finished") +
                             "</span><div class=\"sub\">" + sub + "</div>";
  const std::string body =
      "<section class=\"tiles\">\n" + tiles(s) +
      "</section>\n<section class=\"card chart\"><div class=\"top\"><h2>Distance from the mean</h2>"
      "<div class=\"key\"><span style=\"--tone:var(--c2)\">largest</span>"
      "<span style=\"--tone:var(--c0)\">root mean square</span>"
      "<span style=\"--tone:var(--c1)\">root mean square, in theory at most</span></div></div>\n" +
      picture(f, s) + "</section>\n" + mass_table(s);
  return plain_page(title, ".tiles { margin-bottom: 12px; }", header, body, "gossip_avg");
}

}  // namespace skein::apps
