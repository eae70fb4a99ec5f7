// The model of a ghost is made once, read, and dropped.
#include "apps/flat/flat_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nn/models.h"

namespace skein::apps {
namespace {

// Where collectives are messages, each rank has its part of each slice, and so many numbers make parts equal.
// Elsewhere they need only tell a model's slices apart, and a world of ten thousand spends its time with
// waiting for memory.
int64_t ghost_numbers(int64_t workers) {
  constexpr int64_t kAll = 1 << 18;
  return workers <= comm::sim::kMostByMessages ? 1 << 16 : std::clamp<int64_t>(kAll / workers, 64, 256);
}

FlatModel quadratic_model(const GradientPlan& g) {
  return {.parameters = g.dimension,
          .elements = g.dimension,
          .parts = {{1, {{0, g.dimension}}}},
          .words = fmt::format("a quadratic of {} dimensions", g.dimension)};
}

// Backward takes the same time for each tensor.
std::vector<FlatPart> parts_of(const nn::Layout& layout, double slice_mb, double stands_for) {
  const size_t tensors = layout.segments.size();
  std::vector<int64_t> begins(tensors);
  for (const nn::Segment& s : layout.segments) begins[s.param] = s.offset;
  nn::SliceOrder order(layout, nn::slice_bytes_for(layout.size * int64_t(sizeof(float)), slice_mb));
  std::vector<FlatPart> parts(tensors);
  const auto scaled = [&](int64_t at) { return int64_t(std::llround(double(at) / stands_for)); };
  for (size_t i = 0; i < tensors; ++i) {
    parts[i].share = 1 / double(tensors);
    order.mark(begins[tensors - 1 - i], [&](nn::Slice s) {
      parts[i].slices.push_back({scaled(s.begin), scaled(s.end)});
    });
  }
  return parts;
}

// So much of backward is done when each slice is final; in between, each tensor takes the same time.
void follow(std::vector<FlatPart>& parts, const std::vector<double>& timeline) {
  double before = 0;
  size_t first = 0, slices = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    slices += parts[i].slices.size();
    if (parts[i].slices.empty()) continue;
    CHECK(slices <= timeline.size(), "a timeline of too few slices:", timeline.size());
    const double now = i + 1 == parts.size() ? 1 : timeline[slices - 1];
    for (size_t k = first; k <= i; ++k) parts[k].share = std::max(now - before, 0.0) / double(i + 1 - first);
    before = std::max(before, now), first = i + 1;
  }
  CHECK(slices == timeline.size(), "a timeline of other slices:", timeline.size(), "not", slices);
}

FlatModel ghost_of(const Config& c, const GradientPlan& g) {
  const nn::ModelRow& row = nn::model_row(c.model);
  const int64_t own = row.default_size > 0 ? row.default_size : std::max<int64_t>(row.smallest_size, 32);
  const auto length = [&](int64_t given) {
    return c.image_size > 0 ? c.image_size : given > 0 ? given : own;
  };
  const int64_t height = length(g.height), width = length(g.width);
  const std::unique_ptr<nn::Module> model = nn::make_model(c.model, {height, width, g.channels, g.classes});
  const nn::Layout layout = nn::layout_of(*model);
  FlatModel m{.parameters = layout.count};
  m.elements = std::min(m.parameters, ghost_numbers(c.workers));
  m.stands_for = double(layout.size) / double(m.elements);
  m.parts = parts_of(layout, c.slice_mb, m.stands_for);
  if (!g.timeline.empty()) follow(m.parts, g.timeline);
  m.words = fmt::format("a ghost of {}: {} parameters in {} tensors, images {}x{}x{}, {} classes", c.model,
                        m.parameters, m.parts.size(), height, width, g.channels, g.classes);
  return m;
}

}  // namespace

std::vector<FlatPart> FlatModel::sliced_parts() const {
  std::vector<FlatPart> joined;
  double share = 0;
  for (const FlatPart& p : parts)
    if (share += p.share; !p.slices.empty()) joined.push_back({std::exchange(share, 0), p.slices});
  return joined;
}

FlatModel flat_model(const Config& c, const GradientPlan& g) {
  if (g.kind == GradientPlan::Kind::kQuadratic) return quadratic_model(g);
  return ghost_of(c, g);
}

}  // namespace skein::apps
