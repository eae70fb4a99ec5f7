// EventLog: where the events of a run are written, and the clock that their seconds count by.
#pragma once
#include <memory>

#include "apps/base/clock.h"
#include "apps/report/metrics.h"
#include "apps/report/tensorboard.h"

namespace skein::apps {

// Closed, as on all workers but the first, it writes nothing.
class EventLog {
 public:
  // Continues the files of a run that was resumed at this step; negative: they are new. Throws BadFile.
  void open(const std::string& directory, int64_t resumed_step, bool tensorboard) {
    metrics_ = std::make_unique<MetricsLog>(directory, resumed_step);
    if (tensorboard) board_ = std::make_unique<Tensorboard>(directory, resumed_step);
  }
  bool is_open() const { return metrics_ != nullptr; }
  void start() {
    started_ = clock_seconds();
    if (metrics_) earlier_seconds_ = metrics_->seconds();
  }
  bool has_started() const { return started_ > 0; }
  // Seconds since training began, including earlier runs of it.
  double elapsed() const { return has_started() ? earlier_seconds_ + clock_seconds() - started_ : 0; }

  // TensorBoard gets the events that it has curves for.
  template <class Event>
  void write(const Event& e) {
    if (metrics_) metrics_->write(e);
    if constexpr (requires(Tensorboard & board) { board.write(e); })
      if (board_) board_->write(e);
  }

 private:
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Tensorboard> board_;
  double started_ = 0, earlier_seconds_ = 0;
};

}  // namespace skein::apps
