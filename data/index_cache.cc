// gzip files, whose checksum tells damage, beside the data or in the user's cache.
#include "data/index_cache.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "data/files.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecent = 2'000'000'000;  // nanoseconds; FAT and old NFS count in two seconds

std::string user_cache() {
  if (const char* own = std::getenv("XDG_CACHE_HOME"); own && *own == '/') return text(own, "/skein");
  if (const char* home = std::getenv("HOME"); home && *home == '/') return text(home, "/.cache/skein");
  return "";
}

std::string hash_of(const std::string& s) {
  uint64_t h = 0xCBF29CE484222325u;  // FNV-1a
  for (const unsigned char c : s) h = (h ^ c) * 0x100000001B3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(h));
  return digits;
}

bool write_gzip(const std::string& file, const std::string& bytes) {
  const gzFile z = gzopen(file.c_str(), "wb1");
  if (!z) return false;
  bool good = true;
  constexpr size_t kPiece = 1 << 24;
  for (size_t at = 0; good && at < bytes.size(); at += kPiece) {
    const unsigned n = unsigned(std::min(kPiece, bytes.size() - at));
    good = gzwrite(z, bytes.data() + at, n) == int(n);
  }
  return gzclose(z) == Z_OK && good;
}

}  // namespace

std::string RecordReader::word() {
  const size_t end = bytes_.find('\0', at_);
  if (end == std::string::npos) throw BadFile("the index ends early");
  std::string s = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return s;
}

int64_t RecordReader::number() {
  const std::string s = word();
  int64_t n = 0;
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (code != std::errc() || end != s.data() + s.size())
    throw BadFile("the index has \"" + s + "\" for a number");
  return n;
}

IndexCache::IndexCache(std::string kind, const std::string& path, const std::string& directory,
                       const std::string& tag)
    : kind_("skein index of " + std::move(kind)), path_(fs::absolute(path).lexically_normal().string()) {
  places_.push_back(directory + "/.skein-index" + (tag.empty() ? "" : "-" + hash_of(tag)));
  if (const std::string own = user_cache(); !own.empty())
    places_.push_back(own + "/index-" + hash_of(kind_ + path_ + tag));
}

// Beside the data its path does not matter: the data may be mounted elsewhere today.
std::optional<IndexCache::Found> IndexCache::load() const {
  for (size_t i = 0; i < places_.size(); ++i) try {
      if (!is_file(places_[i])) continue;
      const Bytes all = read_file(places_[i]);
      const std::string bytes(all.begin(), all.end());
      const size_t kind = bytes.find('\0'), path = bytes.find('\0', kind + 1);
      if (kind == std::string::npos || path == std::string::npos || bytes.substr(0, kind) != kind_) continue;
      if (i > 0 && bytes.substr(kind + 1, path - kind - 1) != path_) continue;
      return Found{places_[i], bytes.substr(path + 1)};
    } catch (const BadFile&) {  // damaged: made anew
    }
  return {};
}

std::string IndexCache::store(const std::string& bytes) const {
  Record all;
  all.put(kind_), all.put(path_);
  for (size_t i = 0; i < places_.size(); ++i) {
    std::error_code code;
    const std::string &place = places_[i], half = text(place, '.', ::getpid());
    if (i > 0) fs::create_directories(fs::path(place).parent_path(), code);
    if (write_gzip(half, all.bytes() + bytes) && ::rename(half.c_str(), place.c_str()) == 0) return place;
    ::unlink(half.c_str());
  }
  return "";
}

Times times_of(const std::string& path) {
  struct stat s;
  if (::stat(path.c_str(), &s) != 0) return {};
  const auto ns = [](const timespec& t) { return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec; };
  return {ns(s.st_mtim), ns(s.st_ctim), S_ISREG(s.st_mode) ? int64_t(s.st_size) : 0};
}

bool is_recent(const Times& t) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - t.modified < kRecent;
}

}  // namespace skein::data
