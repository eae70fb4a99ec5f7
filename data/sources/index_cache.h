// IndexCache: a small file that keeps between runs what looking through a data set has found out.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

// Strings and whole numbers, one after the other, each ended by a zero byte.
class Record {
 public:
  void put(const std::string& s) { bytes_.append(s).push_back('\0'); }
  void put(int64_t n) { put(std::to_string(n)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};
// Reads them back; throws BadFile where they end or a number is none.
class RecordReader {
 public:
  explicit RecordReader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string word();
  int64_t number();
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

class IndexCache {
 public:
  // What it is about: a kind with the version of its format ("images 1") and the path of what was looked
  // through. Lies in `directory`, if that can be written, as .skein-index or .skein-index-TAG; else in
  // $XDG_CACHE_HOME/skein or ~/.cache/skein.
  IndexCache(std::string kind, const std::string& path, const std::string& directory,
             const std::string& tag = "");

  struct Found {
    std::string file, bytes;
  };
  // The first that is there and whole. A damaged one, or one of another version, is as good as none.
  std::optional<Found> load() const;
  // Writes it in one stroke: a reader sees the old or the new. Returns the file, "" where
  // none could be written.
  std::string store(const std::string& bytes) const;
  const std::vector<std::string>& places() const { return places_; }

 private:
  const std::string kind_, path_;
  std::vector<std::string> places_;
};

// When a file or directory was last written, and its node, in nanoseconds since 1970. Zeros if it
// cannot be looked at.
struct Times {
  int64_t modified = 0, changed = 0, size = 0;
  bool operator==(const Times&) const = default;
};
Times times_of(const std::string& path);
// A change within the same tick of the file system's clock would not show: what has just been
// written is not kept.
bool is_recent(const Times&);

}  // namespace skein::data
