// Computes the figures from a run's events and summary.
#include "apps/report/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "apps/report/progress.h"

namespace skein::apps {
namespace {

using Value = std::optional<double>;

Value number_in(const Json& j, const std::string& key) {
  const auto at = j.find(key);
  return at != j.end() && at->is_number() ? Value(at->get<double>()) : std::nullopt;
}
Value last(const RunFiles& run, const std::string& kind, const std::string& key) {
  const auto rows = run.rows.find(kind);
  if (rows == run.rows.end()) return {};
  for (auto row = rows->second.rbegin(); row != rows->second.rend(); ++row)
    if (const Value v = number_in(row->second, key)) return v;
  return {};
}
Value either(Value a, Value b) { return a ? a : b; }

Value best_top1(const RunFiles& run) {
  Value best = number_in(run.summary, "best_top1");
  if (const auto rows = run.rows.find("eval"); rows != run.rows.end())
    for (const auto& [step, event] : rows->second)
      if (const Value v = number_in(event, "top1")) best = std::max(best.value_or(*v), *v);
  return best;
}

// The position (`key`) of the first evaluation with at least this accuracy.
Value until(const RunFiles& run, double top1, const std::string& key) {
  const auto rows = run.rows.find("eval");
  if (rows == run.rows.end()) return {};
  for (const auto& [step, event] : rows->second)
    if (number_in(event, "top1").value_or(-1) >= top1) return number_in(event, key);
  return {};
}

Value sent(const RunFiles& run) {
  const Value each = number_in(run.summary, "bytes_per_step"), steps = number_in(run.summary, "steps");
  return each && steps ? Value(*each * *steps) : last(run, "step", "bytes");
}

struct Column {
  std::string name, kind;
  int better;  // 1: larger is better, -1: smaller is better, 0: neither
  std::function<Value(const RunFiles&)> of;
};

std::vector<Column> columns_for(const std::vector<RunGroup>& groups) {
  const auto summed_up = [](const char* key, const char* kind, const char* event_key) {
    return [=](const RunFiles& r) { return either(number_in(r.summary, key), last(r, kind, event_key)); };
  };
  std::vector<Column> all = {
      {"workers", "whole", 0, [](const RunFiles& r) { return Value(double(r.workers())); }},
      {"steps", "whole", 0, summed_up("steps", "step", "step")},
      {"top-1", "percent", 1, summed_up("top1", "eval", "top1")},
      {"best", "percent", 1, best_top1},
      {"test loss", "number", -1, summed_up("loss", "eval", "loss")},
      {"images/s", "speed", 1, summed_up("images_per_second", "step", "images_per_second")},
      {"time", "duration", -1, summed_up("seconds", "step", "seconds")},
  };
  // The highest accuracy that all runs reached.
  double common = INFINITY;
  for (const RunGroup& g : groups)
    for (const RunFiles& r : g.runs) common = std::min(common, best_top1(r).value_or(0));
  common = std::floor(10 * common + 1e-9) / 10;
  if (groups.size() > 1 && common > 0) {
    const std::string name = fmt::format("to {:.1f} %", common);
    all.push_back({name, "duration", -1, [=](const RunFiles& r) { return until(r, common, "seconds"); }});
    all.push_back(
        {name + ", sent", "bytes", -1, [=](const RunFiles& r) { return until(r, common, "bytes"); }});
  }
  all.push_back({"sent", "bytes", -1, sent});
  all.push_back(
      {"hidden", "share", 1, [](const RunFiles& r) { return number_in(r.summary, "hidden_share"); }});
  all.push_back({"consensus", "number", 0, summed_up("consensus_distance", "eval", "consensus_distance")});
  return all;
}

Figure figure_of(const RunGroup& g, const Column& c) {
  double sum = 0, squares = 0;
  for (const RunFiles& r : g.runs) {
    const Value v = c.of(r);
    if (!v || !std::isfinite(*v)) return {};
    sum += *v;
  }
  const double n = double(g.runs.size()), mean = sum / n;
  for (const RunFiles& r : g.runs) squares += (*c.of(r) - mean) * (*c.of(r) - mean);
  return {mean, squares > 0 ? Value(std::sqrt(squares / (n - 1))) : std::nullopt, false};
}

void mark_best(std::vector<Figure>& figures, int better) {
  if (better == 0 ||
      std::count_if(figures.begin(), figures.end(), [](const Figure& f) { return f.value.has_value(); }) < 2)
    return;
  const auto worse = [=](const Figure& a, const Figure& b) {
    return better * a.value.value_or(-better * 1e300) < better * b.value.value_or(-better * 1e300);
  };
  const double best = *std::max_element(figures.begin(), figures.end(), worse)->value;
  for (Figure& f : figures) f.best = f.value && *f.value == best;
}

std::string written(double v, const std::string& kind) {
  if (kind == "percent") return fmt::format("{:.2f} %", v);
  if (kind == "share") return fmt::format("{:.0f} %", 100 * v);
  if (kind == "whole") return fmt::format("{:.0f}", v);
  if (kind == "speed") return format_speed(v);
  if (kind == "duration") return v < 60 ? fmt::format("{:.1f} s", v) : format_duration(v);
  if (kind == "bytes") return format_bytes(v);
  return fmt::format("{:.4g}", v);
}

std::string written(const Figure& f, const std::string& kind) {
  if (!f.value) return "-";
  return written(*f.value, kind) + (f.spread ? " \u00b1 " + written(*f.spread, kind) : "");
}

size_t width_of(const std::string& s) {  // in characters of UTF-8
  return size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}
std::string padded(const std::string& s, size_t width, bool left) {
  const std::string gap(width - std::min(width, width_of(s)), ' ');
  return left ? s + gap : gap + s;
}

}  // namespace

std::vector<FigureColumn> figures_of(const std::vector<RunGroup>& groups) {
  std::vector<FigureColumn> out;
  for (const Column& c : columns_for(groups)) {
    FigureColumn column{c.name, c.kind, {}};
    for (const RunGroup& g : groups) column.figures.push_back(figure_of(g, c));
    if (std::none_of(column.figures.begin(), column.figures.end(),
                     [](const Figure& f) { return f.value.has_value(); }))
      continue;
    const auto as_first = [&](const Figure& f) { return f.value == column.figures[0].value; };
    if (c.name == "workers" && groups.size() > 1 &&
        std::all_of(column.figures.begin(), column.figures.end(), as_first))
      continue;  // an empty column says nothing
    mark_best(column.figures, c.better);
    out.push_back(std::move(column));
  }
  return out;
}

std::string text_table(const std::vector<RunGroup>& groups, const std::vector<FigureColumn>& columns) {
  std::vector<std::string> lines(groups.size() + 1);
  const auto add = [&](const std::vector<std::string>& cells, bool left) {
    size_t width = 0;
    for (const std::string& c : cells) width = std::max(width, width_of(c));
    for (size_t i = 0; i < lines.size(); ++i)
      lines[i] += (lines[i].empty() ? "" : "  ") + padded(cells[i], width, left);
  };
  std::vector<std::string> cells = {"run"};
  for (const RunGroup& g : groups) cells.push_back(g.label);
  add(cells, true);
  for (const FigureColumn& c : columns) {
    cells = {c.name};
    for (const Figure& f : c.figures) cells.push_back(written(f, c.kind));
    add(cells, false);
  }
  std::string all;
  for (const std::string& line : lines) all += line + '\n';
  return all;
}

}  // namespace skein::apps
