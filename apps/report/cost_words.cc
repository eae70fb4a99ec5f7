// What a run cost, in the lines that it ends with.
#include <fmt/format.h>

#include <cmath>

#include "apps/report/metrics.h"
#include "apps/report/progress.h"

namespace skein::apps {
namespace {

std::string beside(const Predicted& p, double measured) {
  std::string s = fmt::format("predicted: {} images/s", format_speed(p.images_per_second));
  if (p.bytes_per_step) s += fmt::format(", {} a step", format_bytes(*p.bytes_per_step));
  if (p.hidden_share) s += fmt::format(", {:.0f} % hidden", 100 * *p.hidden_share);
  const double more = 100 * (measured / p.images_per_second - 1);
  return s + fmt::format("; measured {:.1f} % {} images/s\n", std::abs(more), more < 0 ? "fewer" : "more");
}

}  // namespace

std::string in_words(const CostFigures& c, double training_seconds) {
  std::string s = fmt::format("{} images/s, {} of training\n", format_speed(c.images_per_second),
                              format_duration(training_seconds));
  if (c.bytes_per_step)
    s += fmt::format("{} sent by a worker in a step{}\n", format_bytes(*c.bytes_per_step),
                     c.hidden_share ? fmt::format(", {:.0f} % of the transfer time hidden behind computing",
                                                  100 * *c.hidden_share)
                                    : "");
  if (c.predicted) s += beside(*c.predicted, c.images_per_second);
  return s;
}

}  // namespace skein::apps
