// Draws the live line, and prints other lines above it.
#include "apps/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/base/clock.h"
#include "apps/base/environment.h"
#include "apps/base/printable.h"

namespace skein::apps {
namespace {

constexpr double kRedraw = 0.1;  // seconds; faster updates cannot be read

std::string number(double v, int digits) {
  return std::isfinite(v) ? fmt::format("{:.{}f}", v, digits) : "-";
}
std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : "-";
}
std::string short_number(double v) { return v == std::floor(v) ? number(v, 0) : number(v, 1); }

struct Piece {
  std::string text;
  int rank;  // the part with the highest is dropped first when the line is too long
};

}  // namespace

std::string format_speed(double images_per_second) {
  return number(images_per_second, images_per_second < 99.95 ? 1 : 0);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "-";
  const auto s = int64_t(std::llround(seconds));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  if (s < 2 * 86400) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{} d {} h", s / 86400, s / 3600 % 24);
}

std::string format_bytes(double n) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t u = 0;
  for (; n >= 999.5 && u < 5; ++u) n /= 1000;
  return fmt::format("{:.3g} {}", n, units[u]);
}

std::string format_moment(const Moment& m, int width) {
  std::vector<Piece> pieces = {
      {fmt::format("epoch {}/{}", number(m.epoch, 1), short_number(m.epochs)), 1},
      {fmt::format("step {}/{}", m.step, m.steps), 4},
  };
  if (std::isfinite(m.loss)) pieces.push_back({fmt::format("loss {:.4f}", m.loss), 0});
  if (std::isfinite(m.top1)) pieces.push_back({fmt::format("top-1 {:.1f} %", m.top1), 2});
  if (std::isfinite(m.images_per_second)) {
    pieces.push_back({format_speed(m.images_per_second) + " images/s", 5});
    pieces.push_back({"data " + percent(m.data_wait), 7});
    if (m.workers > 1) pieces.push_back({"peers " + percent(m.peer_wait), 6});
  }
  if (m.workers_at_first > 0 && m.workers != m.workers_at_first)
    pieces.push_back({fmt::format("{} of {} workers", m.workers, m.workers_at_first), 2});
  if (m.loss_scale > 0)
    pieces.push_back({fmt::format("scale {:g} skipped {:g}", m.loss_scale, m.skipped), 8});
  if (m.virtual_seconds >= 0)
    pieces.push_back(
        {fmt::format("{:.3f} s virtual  {:.0f} events/s", m.virtual_seconds, m.events_per_second), 3});
  if (m.seconds_left >= 0 && m.step < m.steps)
    pieces.push_back({"eta " + format_duration(m.seconds_left), 3});
  const auto join = [&] {
    std::string line;
    for (const Piece& p : pieces) line += (line.empty() ? "" : "  ") + p.text;
    return line;
  };
  std::string line = join();
  while (int(line.size()) > width && pieces.size() > 1) {
    pieces.erase(std::max_element(pieces.begin(), pieces.end(),
                                  [](const Piece& a, const Piece& b) { return a.rank < b.rank; }));
    line = join();
  }
  return line.substr(0, size_t(std::max(width, 0)));
}

Showing showing(const std::string& word, std::FILE* out) {
  if (word == "live") return Showing::kLive;
  if (word == "plain") return Showing::kPlain;
  if (word == "none") return Showing::kNone;
  CHECK(word == "auto", word);
  for (const char* name : {"NO_COLOR", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (variable(name)) return Showing::kPlain;
  const auto terminal = variable("TERM");
  const bool draws = ::isatty(::fileno(out)) == 1 && terminal && *terminal != "dumb";
  return draws ? Showing::kLive : Showing::kPlain;
}

Progress::Progress(std::FILE* out, Showing how, double plain_seconds, int width)
    : out_(out),
      showing_(how),
      live_(how == Showing::kLive),
      plain_seconds_(plain_seconds),
      clock_(clock_seconds),
      width_(width) {}

Progress::~Progress() { finish(); }

int Progress::columns() const {
  if (width_ > 0) return width_;
  winsize size{};
  // One column less than there are, because a full line would wrap on some terminals.
  return ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

void Progress::erase() {
  if (!shown_.empty()) std::fputs("\r\x1b[K", out_);
  shown_.clear();
}

void Progress::draw(const std::string& line) {
  std::fprintf(out_, "\r%s\x1b[K", line.c_str());
  shown_ = line;
}

void Progress::show(const Moment& m) {
  if (!out_ || showing_ == Showing::kNone) return;
  const std::scoped_lock lock(mutex_);
  latest_ = format_moment(m, live_ ? columns() : 1 << 20);
  const double t = clock_();
  if (t - last_ < (live_ ? kRedraw : plain_seconds_)) return;
  last_ = t;
  if (live_)
    draw(latest_);
  else
    std::fprintf(out_, "%s\n", latest_.c_str());
  if (!live_) latest_.clear();
  std::fflush(out_);
}

void Progress::say(const std::string& line) {
  if (!out_) return;
  const std::scoped_lock lock(mutex_);
  const std::string live = shown_;
  erase();
  std::fprintf(out_, "%s\n", printable(line).c_str());
  if (!live.empty()) draw(live);
  latest_.clear();  // it is older than this line and must not be repeated below it at the end
  std::fflush(out_);
}

void Progress::finish() {
  if (!out_) return;
  const std::scoped_lock lock(mutex_);
  if (latest_.empty()) {
    erase();
    std::fflush(out_);
    return;
  }
  if (live_) draw(latest_);
  std::fprintf(out_, "%s\n", live_ ? "" : latest_.c_str());
  shown_.clear();
  latest_.clear();
  last_ = -1e300;  // the next state, of a new epoch, is shown at once
  std::fflush(out_);
}

}  // namespace skein::apps
