// Leaving: a worker that is told to leave says so to the others.
#pragma once
#include "apps/train/run.h"
#include "comm/threads.h"

namespace skein::apps {

// A job is ended by a signal to each worker in turn, so a worker that gets one waits to see whether all do.
// Workers in step learn that when they ask each other (stopping.h). Asynchronous ones send a message, from a
// thread of its own: the training's thread may be in a long step when the signal comes, or wait at the end of
// an epoch for slower workers, which would take its worker for one that stays.
class Leaving {
 public:
  explicit Leaving(Run& run) : run_(run) {}
  ~Leaving();
  Leaving(const Leaving&) = delete;

  void begin();  // before the first step
  void look();   // between two steps: whether this worker has been told; if so, it tells the others
  // Among asynchronous workers: whether all have been told.
  bool is_of_all();
  // Whether this worker was told so long ago that it would know if all were.
  bool is_due();

 private:
  void watch();

  Run& run_;
  comm::Mutex mutex_;
  comm::Condition changed_;
  double since_ = 0;  // when this worker noticed that it is to leave; 0: it is not
  int others_ = 0;    // how many others have told it that they are
  bool over_ = false;
  comm::Thread watcher_;
};

}  // namespace skein::apps
