// RunDirectory: the directory of one run, which its workers lock while they train.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::apps {

// Each worker locks a byte, at first that of its rank, in DIR/.skein-lock, so that the directory is free when
// the last of them has ended in any way. The file also names the process that trains, for messages and for
// file systems without locks; there, a note of another host is only reported. Not thread-safe.
class RunDirectory {
 public:
  explicit RunDirectory(int rank) : byte_(rank), first_(rank == 0) {}
  // Marks the note as ended. Removes directories made here that hold no run.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;

  // On rank 0: makes a new directory below runs/, atomically against other processes, and locks it.
  void make(const std::string& model, const std::string& data);
  // On rank 0: makes the directory if it does not exist, and locks it. While another process trains in it,
  // waits for at most `patience` seconds, saying so once, and then throws BadFile that names the process.
  void hold(const std::string& path, double patience, const std::function<void(const std::string&)>& say);
  // On the other ranks, after rank 0.
  void join(const std::string& path);
  // On a worker that has become rank 0 because the one before is lost.
  void take_over();

  const std::string& path() const { return path_; }

 private:
  enum Answer : uint8_t { kTaken, kFree, kUnknown };
  Answer lock(short kind, off_t from, off_t bytes);
  bool take(std::string& who);
  void make_parents();
  void leave_note();

  const off_t byte_;  // of the lock
  bool first_;        // this is rank 0
  std::string path_;
  comm::Fd file_;
  std::vector<std::filesystem::path> made_;  // the innermost first
};

// Throws BadOption, saying what to do instead, if there is a run in the directory.
void refuse_a_run(const std::string& directory);

}  // namespace skein::apps
