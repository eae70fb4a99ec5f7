// OrderLog: what an asynchronous run left to the order of arrivals, written down, and done again.
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

// One list of numbers of one rank: whom a server served, what a partner answered before its step, and so on.
// Of
// --record PATH and --replay PATH; its file is PATH.NAME. Not thread-safe.
class OrderLog {
 public:
  // `name` is unique in the run, as "server" or "3". Off where the options say neither. Throws BadFile: a
  // file that cannot be made, is missing, or is no such log; BadOption: both.
  OrderLog(const Options&, const std::string& name);
  ~OrderLog();
  OrderLog(const OrderLog&) = delete;

  bool replaying() const { return replaying_; }
  bool ended() const { return at_ >= int64_t(past_.size()); }  // replaying: nothing more is recorded
  // Replaying: what is to happen next, without going on; throws BadFile where the recording has ended.
  int64_t next() const;
  // It has happened: recording, writes it down; replaying, goes on, and throws Error unless it was to happen.
  void happened(int64_t);
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
  std::vector<int64_t> past_;  // replaying: all of it
  int64_t at_ = 0;
};

}  // namespace skein::optim
