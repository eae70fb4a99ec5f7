// Chooses the steps to show, and aligns the workers' clocks.
#include "apps/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/base/clock.h"
#include "apps/base/together.h"
#include "apps/report/trace_file.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

using comm::Span;

constexpr size_t kSteps = 3;
constexpr size_t kManySpans = 400;   // in one worker: more than a screen can resolve
constexpr size_t kMostSpans = 1500;  // the longest ones are kept
constexpr int kShownWorkers = 16;

double microseconds(double seconds) { return std::round(seconds * 1e7) / 1e7; }

size_t spans_in(const std::vector<Span>& spans, const Excerpt& e) {
  return size_t(std::count_if(spans.begin(), spans.end(),
                              [&](const Span& s) { return s.end > e.begin && s.begin < e.end; }));
}

// Whether other work, such as an evaluation, falls between.
bool works_between(const std::vector<Span>& spans, double begin, double end) {
  return std::any_of(spans.begin(), spans.end(), [&](const Span& s) {
    return s.track == comm::Track::kCompute && !is_frame(s) && s.begin >= begin && s.end <= end;
  });
}

// Spans refer to their track and name by the index in the file's tables.
int place_in(Json& table, const Json& name) {
  const auto at = std::find(table.begin(), table.end(), name);
  if (at != table.end()) return int(at - table.begin());
  table.push_back(name);
  return int(table.size()) - 1;
}

const char* name_of(comm::Track t) {
  return t == comm::Track::kCompute ? "compute" : t == comm::Track::kTransfer ? "transfer" : "waiting";
}

}  // namespace

std::optional<Excerpt> typical_steps(const std::vector<Span>& spans) {
  std::vector<Span> frames;
  for (const Span& s : spans)
    if (is_frame(s)) frames.push_back(s);
  if (frames.empty()) return {};
  const auto excerpt = [&](size_t last, size_t steps) {
    const Span &a = frames[last + 1 - steps], &b = frames[last];
    return Excerpt{a.begin, b.end, a.step, b.step};
  };
  for (size_t steps = std::min(kSteps, frames.size()); steps > 0; --steps)
    for (size_t last = frames.size(); last-- >= steps;) {
      const Excerpt e = excerpt(last, steps);
      bool paused = false;
      for (size_t i = last + 1 - steps; i < last; ++i)
        paused = paused || works_between(spans, frames[i].end, frames[i + 1].begin);
      if (paused) continue;
      if (steps == 1 || spans_in(spans, e) <= kManySpans) return e;
    }
  return excerpt(frames.size() - 1, 1);
}

Json spans_within(const std::vector<Span>& all, double begin, double end) {
  std::vector<Span> kept;
  for (Span s : in_order(all)) {
    s.begin = std::max(s.begin, begin), s.end = std::min(s.end, end);
    if (s.end > s.begin) kept.push_back(s);
  }
  if (kept.size() > kMostSpans) {
    const auto longer = [](const Span& a, const Span& b) { return a.end - a.begin > b.end - b.begin; };
    std::nth_element(kept.begin(), kept.begin() + kMostSpans, kept.end(), longer);
    kept.resize(kMostSpans);
    kept = in_order(kept);
  }
  Json out = Json::array();
  for (const Span& s : kept)
    out.push_back({name_of(s.track), s.name, microseconds(s.begin - begin), microseconds(s.end - s.begin),
                   s.step, s.peer, s.bytes});
  return out;
}

Json timeline(comm::Communicator& comm, int worker, const std::vector<Span>& spans) {
  const bool first = comm.rank() == 0;
  const std::optional<Excerpt> mine = first ? typical_steps(spans) : std::nullopt;
  comm.barrier();
  const double now = clock_seconds();  // the same moment on all workers, whatever their clocks say
  const std::string said = from_rank_zero(
      comm, mine ? fmt::format("{:.9f} {:.9f}", mine->begin - now, mine->end - now) : std::string("none"));
  double begin = 0, end = 0;
  if (std::sscanf(said.c_str(), "%lf %lf", &begin, &end) != 2) return nullptr;
  const bool shown = comm.rank() < kShownWorkers;
  const Json own = {{"rank", worker},
                    {"spans", shown ? spans_within(spans, now + begin, now + end) : Json::array()}};
  Json out = {{"steps", {0, 0}},
              {"seconds", microseconds(end - begin)},
              {"tracks", Json::array()},
              {"names", Json::array()},
              {"workers", Json::array()}};
  for (const std::string& text : comm::gather_text(comm, own.dump(), 0)) {
    if (out["workers"].size() == size_t(kShownWorkers)) break;
    Json other = parse_json<Json>(text);
    for (Json& s : other["spans"]) s[0] = place_in(out["tracks"], s[0]), s[1] = place_in(out["names"], s[1]);
    out["workers"].push_back(std::move(other));
  }
  if (!first) return nullptr;
  out["steps"] = {mine->first_step, mine->last_step};
  return out;
}

}  // namespace skein::apps
