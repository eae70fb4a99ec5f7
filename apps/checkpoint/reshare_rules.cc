// The table of rules.
#include "apps/checkpoint/reshare_rules.h"

#include <string_view>
#include <vector>

namespace skein::apps {
namespace {

struct Row {
  std::string algorithms;  // empty: all
  std::string field;       // `*` stands for any beginning or end
  How how;
};
const std::vector<Row>& table() {
  static const std::string pullers = " downpour dynsgd agn gem ", gossips = " sgp osgp ad-psgd ";
  static const std::vector<Row> rows = {
      {"", "meters.*", How::kSum},
      {"", "transfers.*", How::kSum},
      {"", "unreadable*", How::kSum},
      {"", "loss_scale.scale", How::kLeast},
      {"", "*residual", How::kOwed},
      {"", "*common", How::kCommon},
      {pullers, "x", How::kCenter},
      {pullers, "strategy.pulled", How::kCenter},
      {pullers, "strategy.s", How::kCenter},
      {pullers, "strategy.version", How::kCenterVersion},
      {"", "strategy.center.log", How::kZero},
      {"", "strategy.center.kept", How::kOwed},  // nothing, where the worker that kept it is lost
      {gossips, "strategy.x", How::kNumerator},
      {gossips, "x", How::kNumerator},
      {" osgp ad-psgd ", "buffers", How::kNumeratorTail},
      {gossips, "strategy.w", How::kOne},
      {" osgp ", "strategy.started", How::kLargest},
      {" osgp ", "strategy.age", How::kZero},
      {" osgp ", "strategy.ahead", How::kZero},
      {" osgp ", "strategy.aloft", How::kZero},
      {" osgp ", "strategy.flights", How::kZero},
      {" osgp ad-psgd ", "strategy.log", How::kZero},
      {" lsgd ", "strategy.leases.leased", How::kSum},  // a newcomer has taken nothing
      {" lsgd ", "strategy.leases.group.*", How::kZero},
      {" lsgd ", "*anchor", How::kCommon},
      {"", "strategy.copies.*", How::kZero},                 // the edges of the old graph are gone
      {" d2 momentum-tracking ", "strategy.c", How::kZero},  // the workers' corrections add up to zero
  };
  return rows;
}

bool matches(std::string_view pattern, std::string_view field) {
  if (pattern.ends_with('*')) return field.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern.starts_with('*') ? field.ends_with(pattern.substr(1)) : field == pattern;
}

}  // namespace

How how_of(const std::string& algorithm, const std::string& field) {
  for (const Row& r : table()) {
    if (!r.algorithms.empty() && r.algorithms.find(' ' + algorithm + ' ') == std::string::npos) continue;
    if (matches(r.field, field)) return r.how;
  }
  return How::kMean;
}

}  // namespace skein::apps
