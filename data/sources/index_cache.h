// IndexCache: a small file that keeps the index of a data set between runs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

// A sequence of strings and whole numbers, each ended by a zero byte.
class Record {
 public:
  void put(const std::string& s) { bytes_.append(s).push_back('\0'); }
  void put(int64_t n) { put(std::to_string(n)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};
// Reads them back. Throws BadFile at the end, or if a number is expected and the string is no such number.
class RecordReader {
 public:
  explicit RecordReader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string word();
  int64_t number(int64_t least = INT64_MIN, int64_t most = INT64_MAX);
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

class IndexCache {
 public:
  // `kind` includes the version of its format ("images 1"); `path` is what was indexed. The
  // file lies in `directory`, if that can be written, as .skein-index or .skein-index-TAG; else
  // in $XDG_CACHE_HOME/skein or ~/.cache/skein.
  IndexCache(std::string kind, const std::string& path, const std::string& directory,
             const std::string& tag = "");

  struct Found {
    std::string file, bytes;
  };
  // The first file that exists and is whole. A damaged one, one of another version, and one that another user
  // may have written are ignored.
  std::optional<Found> load() const;
  // Writes the file atomically: a reader sees the old or the new one. Leaves another user's alone. Returns
  // its path, "" if none could be written.
  std::string store(const std::string& bytes) const;
  const std::vector<std::string>& places() const { return places_; }

 private:
  const std::string kind_, path_;
  std::vector<std::string> places_;
};

// When a file or directory and its inode were last changed, in nanoseconds since 1970. Zeros if stat fails.
struct Times {
  int64_t modified = 0, changed = 0, size = 0;
  bool operator==(const Times&) const = default;
};
Times times_of(const std::string& path);
// Whether the times are so recent that a further change within the same tick of the file system's clock would
// not show. Such entries must not be cached.
bool is_recent(const Times&);

}  // namespace skein::data
