// Files that are whole or absent: written aside, flushed to the disk, then renamed.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "engine/base.h"

namespace skein::apps {

// A file being written. Every call throws BadFile naming the path, what failed and what to do (full disk, no
// permission, missing directory). Destroyed before close(), it removes what it wrote.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);  // creates or truncates
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  void write(const void* data, size_t bytes);
  void close();  // flushed to the disk on return

 private:
  std::string path_;
  int fd_ = -1;
};

// Replaces `path` by `bytes` atomically: readers see the old file or the new one, also after a power failure.
void write_file(const std::string& path, std::string_view bytes);
// The last step of the same, for a file that is written and closed: renames it and flushes the directory.
void rename_file(const std::string& from, const std::string& to);
// Throws BadFile if it cannot be read.
std::string read_file(const std::string& path);

// mkdir -p; throws BadFile if the directory cannot be made or written to.
void make_directory(const std::string& path);
// Makes renames, creations and removals in a directory survive a power failure.
void sync_directory(const std::string& path);

// BLAKE2b-256 of some bytes, as 64 hexadecimal digits; fed in pieces.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(const void* data, size_t bytes);
  std::string hex();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of a whole file, read in pieces. Throws BadFile.
std::string digest_of_file(const std::string& path);

}  // namespace skein::apps
