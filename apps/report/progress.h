// One live line on a terminal, plain lines elsewhere.
#pragma once
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>

#include "engine/base.h"

namespace skein::apps {

// The state of training at one moment. Values that are not finite are unknown yet and not shown.
// Large class: the numbers of one line.
struct Moment {
  double epoch = 0, epochs = 0;  // epochs seen, with fraction; total
  int64_t step = 0, steps = 0;   // steps taken; total
  double loss = 0, top1 = 0;     // recent means; top1 in percent
  double images_per_second = 0;
  double data_wait = 0, peer_wait = 0;  // shares of the time, 0..1
  int workers = 1;                      // the share of peers is shown if there are several
  int workers_at_first = 0;             // shown if they are others now; 0: they are always the same
  double loss_scale = 0, skipped = 0;   // scale, 0 if gradients are not scaled; steps skipped
  double seconds_left = -1;             // negative if unknown
  double virtual_seconds = -1, events_per_second = 0;  // of a simulated world; negative: time is real
};
// "epoch 3/10  step 1200/9380  loss 0.4321  top-1 84.5 %  12345 images/s  data 1 %  peers 4 %  eta 2:31", cut
// to `width` columns by leaving out the least important parts.
std::string format_moment(const Moment&, int width = 1 << 20);
std::string format_speed(double images_per_second);  // "1234", "4.4"
std::string format_duration(double seconds);         // "0:07", "12:31", "3:05:00", "2 d 4 h"
std::string format_bytes(double bytes);              // "512 B", "1.08 MB"

// --progress: a line that is redrawn, lines every few seconds, or neither.
enum class Showing : uint8_t { kLive, kPlain, kNone };
// What "auto", "live", "plain" or "none" means for `out`. auto is live on a capable terminal, but not with
// NO_COLOR, and not under mpirun, which gives its processes a terminal whatever its own output is.
Showing showing(const std::string& word, std::FILE* out);

// All output of a program while it trains goes through this object, so that lines never mix. Thread-safe.
class Progress {
 public:
  // kLive redraws the line at most ten times a second; kPlain writes one every `plain_seconds`. `out`
  // must outlive this object; null: nothing is written.
  explicit Progress(std::FILE* out, Showing = Showing::kPlain, double plain_seconds = 10, int width = 0);
  ~Progress();  // ends the live line
  Progress(const Progress&) = delete;

  // The clock that says when a line is due, in seconds; clock_seconds() unless given.
  void pace_by(std::function<double()> clock) { clock_ = std::move(clock); }

  void show(const Moment&);           // shows it now, or never if that is too soon
  void say(const std::string& line);  // prints a whole line above the live one
  void finish();                      // leaves the last state visible and starts a new line

 private:
  void erase();
  void draw(const std::string& line);
  int columns() const;
  std::mutex mutex_;
  std::FILE* out_;
  const Showing showing_;
  const bool live_;
  const double plain_seconds_;
  std::function<double()> clock_;
  const int width_;
  double last_ = -1e300;
  std::string shown_, latest_;
};

}  // namespace skein::apps
