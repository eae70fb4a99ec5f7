// RunDirectory: the directory of one run, made for it alone and held by its workers while it is trained.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "comm/join/sockets.h"

namespace skein::apps {

// Held by locks on the bytes of DIR/.skein-lock, the byte of each worker's rank, so that a directory is free
// when the last of them has ended, however it ended. In the file is a note of who trains: for messages, and
// to go by on a file system without locks, where a note of another host is only reported. One thread.
class RunDirectory {
 public:
  explicit RunDirectory(int rank) : rank_(rank) {}
  // Ends the note. What was made here and holds no run now is removed again.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;

  // Rank 0. Makes a directory below runs/ that no other process makes, also at this moment, and holds it.
  void make(const std::string& model, const std::string& data);
  // Rank 0. Makes the directory if it is not there, and holds it. While another process trains in it, waits
  // for at most so many seconds, saying so once, and then throws BadFile that names the process.
  void hold(const std::string& path, double patience, const std::function<void(const std::string&)>& say);
  // The other ranks, after rank 0.
  void join(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  enum Answer : uint8_t { kTaken, kFree, kUnknown };
  Answer lock(short kind, off_t from, off_t bytes);
  bool take(std::string& who);
  void make_parents();
  void leave_note();

  const int rank_;
  std::string path_;
  comm::Fd file_;
  std::vector<std::filesystem::path> made_;  // the innermost first
};

// Throws BadOption, naming the ways out, if there is a run in the directory.
void refuse_a_run(const std::string& directory);

}  // namespace skein::apps
