// OrderLog: the order of arrivals in an asynchronous run, recorded and replayed.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/archive.h"
#include "optim/strategy.h"

namespace skein::optim {

// One rank's list of numbers: the ranks that a server served, the partners answered before a step, and so on.
// With --record PATH or --replay PATH its file is PATH.NAME. Not thread-safe.
class OrderLog {
 public:
  // `name` is unique in the run, as "server" or "3". If the options say neither, it does nothing. Throws
  // BadFile if the file cannot be made, is missing or is no such log, and BadOption if the options say both.
  OrderLog(const Options&, const std::string& name);
  ~OrderLog();
  OrderLog(const OrderLog&) = delete;

  bool replaying() const { return replaying_; }
  bool ended() const { return at_ >= int64_t(past_.size()); }  // replaying: nothing more is recorded
  // Replaying: what is to happen next, without going on; throws BadFile where the recording has ended.
  int64_t next() const;
  // An event has happened: a recording writes it down, a replay goes on and throws Error if another was due.
  // If go_to() was not called before, the run begins: what its file has of an earlier run is discarded.
  void happened(int64_t);
  // Whether a meeting is an event: in a replay only where the recorded run had one too. There it must have
  // had one if steps have been taken since the last; throws Error if not.
  bool has_meeting(int64_t event, bool steps_since) const;
  // How many entries have happened; a recording is in its file as far as that.
  int64_t position();
  // A resumed run goes on from there: a recording forgets what it has of later entries.
  void go_to(int64_t position);
  void visit(Archive&);  // the position

 private:
  [[noreturn]] void fail(const std::string& what) const;
  std::string path_;
  bool replaying_ = false;
  std::FILE* file_ = nullptr;  // recording
  bool placed_ = false;        // the file ends where this run goes on
  std::vector<int64_t> past_;  // replaying: all of it
  int64_t at_ = 0;
};

}  // namespace skein::optim
