// Writes files that are whole or absent, by renaming a temporary file, and reads files without trusting them.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base.h"

namespace skein {

// Thrown by the functions of this file. The message names the path, what failed and what to do (full disk,
// no permission, missing directory).
struct FileError : BadFile {
  FileError(const std::string& message, int code) : BadFile(message), code(code) {}
  const int code;  // errno
};

enum class Writing : uint8_t {
  // Written by one process at a time; survives a power failure. If two processes write it all the same, the
  // one that began last puts its file in place, and the other none.
  kDurable,
  kPrivate,  // like kDurable, and only this user may read it
  // Written by several processes and threads at once, but no other user's; a power failure may lose it.
  kCache,
};

// A file that takes the place of `path` when it is complete: readers see the old file or the new one.
// Destroyed before close(), it removes what it wrote.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path, Writing = Writing::kDurable);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  void write(const void* data, size_t bytes);
  void close();  // on return the file is in its place and, unless kCache, on the disk

 private:
  bool is_taken_over() const;
  [[noreturn]] void give_up(const std::string& path, const char* what);
  const std::string path_, aside_;
  const Writing how_;
  int fd_ = -1;
};
// The same in one call.
void write_file(const std::string& path, std::string_view bytes, Writing = Writing::kDurable);

// Opens a file for reading and returns its descriptor, or -1 and errno. Only files are opened: opening a
// pipe may wait for its writer forever, and a device may have no end. errno is then EISDIR for a
// directory, else ESPIPE.
int open_to_read(const std::string& path);

// A network file system caches that a file is missing. This makes it look again into a directory, or into the
// nearest one above it that exists.
void look_afresh(std::filesystem::path directory);

// A file that is read from its beginning to its end. Its functions throw FileError.
class FileReader {
 public:
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  int64_t size() const { return size_; }  // when it was opened; 0 for the files of /proc
  // Whether only this user and root can have written it.
  bool is_ours() const { return is_ours_; }
  size_t read(void* to, size_t bytes);  // fewer only at the end
  // What is left of the file. Refuses more than `most` bytes, and more than this machine has memory.
  std::string rest(int64_t most = INT64_MAX);

 private:
  const std::string path_;
  const int fd_;
  int64_t size_ = 0;
  bool is_ours_ = false;
};

std::string read_file(const std::string& path, int64_t most = INT64_MAX);  // as FileReader::rest
// Calls f with each piece of the file, in order.
void read_pieces(const std::string& path, const std::function<void(const char* data, size_t bytes)>& f);

// False also for a name that no path may have, or that may not be looked at, where the library's function of
// this name throws. A call with a path must say skein::is_directory, because both would fit.
bool is_directory(const std::filesystem::path& path);
// mkdir -p. Throws also if the directory cannot be written to.
void make_directory(const std::string& path);
// Makes renames, creations and removals in a directory survive a power failure.
void sync_directory(const std::string& path);

// $XDG_CACHE_HOME/skein, else ~/.cache/skein; empty if neither variable is set.
std::string cache_directory();

}  // namespace skein
