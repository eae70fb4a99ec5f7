// The model of a ghost is made once, read, and dropped.
#include "apps/flat/flat_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
          .ends = {g.dimension},
          .words = fmt::format("a quadratic of {} dimensions", g.dimension)};
}

FlatModel ghost_of(const Config& c, const GradientPlan& g) {
  const nn::ModelRow& row = nn::model_row(c.model);
  const int64_t own = row.default_size > 0 ? row.default_size : std::max<int64_t>(row.smallest_size, 32);
  const int64_t side = c.image_size > 0 ? c.image_size : g.side > 0 ? g.side : own;
  const std::unique_ptr<nn::Module> model = nn::make_model(c.model, {side, side, g.channels, g.classes});
  FlatModel m{.parameters = nn::count_params(*model)};
  m.elements = std::min(m.parameters, ghost_numbers(c.workers));
  m.stands_for = double(m.parameters) / double(m.elements);
  int64_t so_far = 0;
  for (const nn::Param* p : model->params()) {
    so_far += p->value.size();
    m.ends.push_back(int64_t(std::llround(double(so_far) / m.stands_for)));
  }
  m.words = fmt::format("a ghost of {}: {} parameters in {} tensors, images {}x{}x{}, {} classes", c.model,
                        m.parameters, m.ends.size(), side, side, g.channels, g.classes);
  return m;
}

}  // namespace

std::vector<FlatPart> FlatModel::backward(double least_elements) const {
  std::vector<FlatPart> parts;
  FlatPart now{elements, elements, 0};
  for (size_t i = ends.size(); i-- > 0;) {
    now.begin = i > 0 ? ends[i - 1] : 0;
    now.share += 1 / double(ends.size());
    if (i > 0 && double(now.end - now.begin) < least_elements) continue;
    parts.push_back(now);
    now = {now.begin, now.begin, 0};
  }
  return parts;
}

FlatModel flat_model(const Config& c, const GradientPlan& g) {
  if (g.kind == GradientPlan::Kind::kQuadratic) return quadratic_model(g);
  return ghost_of(c, g);
}

}  // namespace skein::apps
