// Converts spans to events of the Chrome trace format.
#include "apps/report/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "apps/base/together.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

using comm::Span;
using comm::Track;

// Lanes of transfers count up from here.
constexpr int kComputeThread = 1, kWaitingThread = 2, kTransferThread = 3;
constexpr double kShortest = 1e-6;  // seconds; shorter gaps are not shown as work

constexpr const char* kHead = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
constexpr const char* kTail = "{\"name\":\"trace_end\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{}}\n]}\n";

// Replaces each frame by its parts that are neither other work nor waiting. `all` is ordered by beginning.
std::vector<Span> without_frames(const std::vector<Span>& all) {
  std::vector<Span> out, busy;
  for (const Span& s : all) {
    if (!is_frame(s)) out.push_back(s);
    if (!is_frame(s) && s.track != Track::kTransfer) busy.push_back(s);
  }
  size_t next = 0;
  for (const Span& frame : all) {
    if (!is_frame(frame)) continue;
    double at = frame.begin;
    const auto gap = [&](double until) {
      Span s = frame;
      s.begin = at, s.end = std::min(until, frame.end);
      if (s.end - s.begin > kShortest) out.push_back(s);
    };
    while (next < busy.size() && busy[next].end <= frame.begin) ++next;
    for (; next < busy.size() && busy[next].begin < frame.end; ++next) {
      gap(busy[next].begin);
      at = std::max(at, busy[next].end);
    }
    gap(frame.end);
  }
  return out;
}

// Events of one thread must not overlap: a transfer takes the first lane that is free.
std::vector<int> lanes_of(const std::vector<Span>& spans) {
  std::vector<double> free_at;
  std::vector<int> lanes(spans.size(), 0);
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].track != Track::kTransfer) continue;
    const auto lane =
        std::find_if(free_at.begin(), free_at.end(), [&](double t) { return t <= spans[i].begin; });
    lanes[i] = int(lane - free_at.begin());
    if (lane == free_at.end())
      free_at.push_back(spans[i].end);
    else
      *lane = spans[i].end;
  }
  return lanes;
}

std::string arguments(const Span& s) {
  std::string a;
  const auto add = [&](const char* name, int64_t v) {
    if (v >= 0) a += fmt::format("{}\"{}\":{}", a.empty() ? "" : ",", name, v);
  };
  add("step", s.step), add("from", s.peer), add("bytes", s.bytes);
  return a.empty() ? "" : ",\"args\":{" + a + "}";
}

std::string name_of_thread(int worker, int thread, const std::string& name) {
  return fmt::format(
      "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"args\":{{\"name\":\"{2}\"}}}},\n"
      "{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"args\":{{\"sort_index\":{1}}}}"
      "},\n",
      worker, thread, name);
}

}  // namespace

bool is_frame(const Span& s) { return s.track == Track::kCompute && std::strcmp(s.name, kFrame) == 0; }

std::vector<Span> in_order(std::vector<Span> spans) {
  const auto earlier = [](const Span& a, const Span& b) { return a.begin < b.begin; };
  std::stable_sort(spans.begin(), spans.end(), earlier);
  spans = without_frames(spans);
  std::stable_sort(spans.begin(), spans.end(), earlier);
  return spans;
}

std::string trace_events(int worker, std::vector<Span> all, double origin) {
  const std::vector<Span> spans = in_order(std::move(all));
  const std::vector<int> lanes = lanes_of(spans);
  std::string out = fmt::format(
      "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"args\":{{\"name\":\"worker "
      "{0}\"}}}},\n"
      "{{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"args\":{{\"sort_index\":{0}}}}}"
      ",\n",
      worker);
  out +=
      name_of_thread(worker, kComputeThread, "compute") + name_of_thread(worker, kWaitingThread, "waiting");
  const int most = lanes.empty() ? 0 : *std::max_element(lanes.begin(), lanes.end());
  for (int lane = 0; lane <= most; ++lane)
    out += name_of_thread(worker, kTransferThread + lane,
                          lane == 0 ? "transfer" : fmt::format("transfer {}", lane + 1));
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& s = spans[i];
    const bool moves = s.track == Track::kTransfer, waits = s.track == Track::kWaiting;
    out += fmt::format(
        "{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}{}}}"
        ",\n",
        s.name,
        moves   ? "transfer"
        : waits ? "waiting"
                : "compute",
        worker,
        moves   ? kTransferThread + lanes[i]
        : waits ? kWaitingThread
                : kComputeThread,
        (s.begin - origin) * 1e6, (s.end - s.begin) * 1e6, arguments(s));
  }
  return out;
}

void begin_trace(const std::string& path) { write_file(path, text(kHead, kTail)); }

void end_trace(const std::string& path, comm::Communicator& comm, int worker, const comm::Trace& trace,
               double origin) {
  std::string mine = trace_events(worker, trace.spans(), origin);
  if (const int64_t n = trace.left_out())
    mine += fmt::format(
        "{{\"name\":\"spans left out\",\"ph\":\"M\",\"pid\":{},\"tid\":0,\"args\":{{\"count\":{}}}}},\n",
        worker, n);
  std::string all = kHead;
  for (const std::string& events : comm::gather_text(comm, mine, 0)) all += events;
  together(comm, [&] {
    if (comm.rank() == 0) write_file(path, all + kTail);
  });
}

}  // namespace skein::apps
