// The plan as a page: tiles, a bar for each setting, and the table. The style is that of report.html.
#include <fmt/format.h>

#include <algorithm>

#include "apps/plan/plan.h"
#include "apps/report/progress.h"
#include "apps/report/report_page.h"

namespace skein::apps {
namespace {

constexpr double kWidth = 1100, kNames = 330, kFigures = 130, kLine = 26;

std::string name_of(const Candidate& c) {
  return escape_html(text(c.algorithm, c.flags.empty() ? "" : " ", c.flags));
}

// A bar is as long as its images a second; the part for which a worker waits is gray.
std::string bars(const Plan& p) {
  const double most = p.forecasts.front().images_per_second, room = kWidth - kNames - kFigures;
  const double one = by_one_worker(p.probed).images_per_second;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"images a second of each setting\">\n",
                  kWidth, kLine * double(p.forecasts.size()) + 24);
  double y = 0;
  for (const Forecast& f : p.forecasts) {
    const double whole = room * f.images_per_second / most, busy = whole * (1 - f.waiting);
    svg += fmt::format(
        "<text class=\"said\" x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\" fill=\"var(--c0)\"/>"
        "<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\" fill=\"var(--wait)\"/>"
        "<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n",
        kNames - 10, y + 15, name_of(f.what), kNames, y + 3, busy, kNames + busy, y + 3, whole - busy,
        kNames + whole + 6, y + 15, format_speed(f.images_per_second));
    y += kLine;
  }
  const double at = kNames + room * std::min(1.0, one / most);
  return svg + fmt::format(
                   "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.0f}\"/>"
                   "<text x=\"{2:.1f}\" y=\"{3:.0f}\">one worker alone: {4}</text>\n</svg>\n",
                   at, y, at + 5, y + 16, format_speed(one));
}

std::string table(const Plan& p) {
  std::string rows;
  for (const Forecast& f : p.forecasts)
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.0f} %</td><td>{}</td><td>{:.3g} "
        "MB</td><td>{:.3g}</td><td>{}</td><td>{}</td></tr>\n"
        "<tr><td class=\"command\" colspan=\"8\"><code>{}</code></td></tr>\n",
        name_of(f.what), format_speed(f.images_per_second), 100 * f.waiting,
        f.hidden ? fmt::format("{:.0f} %", 100 * *f.hidden) : "–", f.bytes_per_step / 1e6,
        hours_of_epoch(p, f), f.accuracy ? fmt::format("{:+.2f}", *f.accuracy) : "–", escape_html(f.limit),
        escape_html(command_of(p, f)));
  return "<section class=\"card "
         "wide\"><h2>Settings</h2><table><tr><th>setting</th><th>images/s</th><th>waiting</th>"
         "<th>hidden</th><th>sent / step</th><th>hours / epoch</th><th>accuracy</th><th>limited "
         "by</th></tr>\n" +
         rows +
         "</table><p class=\"note\">accuracy: points to allreduce after one epoch of resnet20 on "
         "Fashion-MNIST by 4 workers, "
         "measured by bench/compare with its own rates; not of this model.</p></section>\n";
}

std::string commands(const Plan& p) {
  std::string all;
  for (const Start& one : starts(p))
    all += fmt::format("<p>{}{}{}:</p>\n<p><code>{}</code></p>\n", escape_html(one.why),
                       one.why.empty() ? "" : "; ", escape_html(one.what), escape_html(one.command));
  return "<section class=\"card wide\"><h2>Commands</h2>\n" + all + "</section>\n";
}

}  // namespace

std::string plan_page(const Plan& p) {
  const std::string title =
      escape_html(text("Plan: ", p.config.model, " by ", p.probed.workers.size(), " workers"));
  const Forecast& best = p.forecasts.front();
  const std::string body =
      "<section class=\"tiles\">\n" +
      tile(format_speed(best.images_per_second), "images/s at best, simulated") +
      tile(format_speed(by_one_worker(p.probed).images_per_second), "by one worker alone") +
      tile(std::to_string(p.probed.fronts.size()), "hosts") +
      tile(fmt::format("{:.1f} ms", 1e3 * p.probed.workers.front().step()), "a step of worker 0") +
      "</section>\n" + commands(p) +
      "<section class=\"card chart\"><div class=\"top\"><h2>Images a second</h2><div "
      "class=\"key\">"
      "<span style=\"--tone:var(--c0)\">at work</span><span "
      "style=\"--tone:var(--wait)\">waiting</span></div></div>\n" +
      bars(p) + "</section>\n" + table(p);
  const std::string style =
      ".tiles, .card { margin-bottom: 12px; } .wide { overflow-x: auto; } "
      "td, th { text-align: left; padding: 3px 12px 3px 0; white-space: nowrap; } "
      "td.command { white-space: normal; border-top: 0; padding-bottom: 10px; }";
  const std::string header = "<div class=\"sub\">" + escape_html(verdict(p)) + "</div>";
  return plain_page(title, style, header, body, "train_imagenet --plan");
}

}  // namespace skein::apps
