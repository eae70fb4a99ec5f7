// The cache is a gzip file, whose checksum detects damage, beside the data or in the user's cache directory.
#include "data/sources/index_cache.h"

#include <sys/stat.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>

#include "data/files.h"
#include "engine/words/file.h"
#include "engine/words/hash.h"
#include "engine/words/number.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecent = 2'000'000'000;  // nanoseconds; FAT's clock ticks every two seconds, old NFS's too

// Each piece becomes a gzip member, because zlib's byte counters have 32 bits; the members
// read as one stream.
std::string gzip(std::string_view bytes) {
  std::string packed;
  do {
    const std::string_view piece = bytes.substr(0, size_t(1) << 30);
    bytes.remove_prefix(piece.size());
    z_stream z{};
    constexpr int kQuick = 1, kWithHeader = 15 + 16;
    CHECK(deflateInit2(&z, kQuick, Z_DEFLATED, kWithHeader, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    const size_t had = packed.size();
    packed.resize(had + deflateBound(&z, piece.size()));
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    z.avail_in = uInt(piece.size());
    z.next_out = reinterpret_cast<Bytef*>(packed.data() + had);
    z.avail_out = uInt(packed.size() - had);
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    packed.resize(had + z.total_out);
    deflateEnd(&z);
  } while (!bytes.empty());
  return packed;
}

bool is_anothers(const std::string& path) {
  try {
    return !FileReader(path).is_ours();
  } catch (const FileError&) { return false; }  // usually there is none
}

}  // namespace

std::string RecordReader::word() {
  const size_t end = bytes_.find('\0', at_);
  if (end == std::string::npos) throw BadFile("the index ends early");
  std::string s = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return s;
}

int64_t RecordReader::number(int64_t least, int64_t most) {
  const std::string s = word();
  if (const auto n = number_in<int64_t>(s); n && *n >= least && *n <= most) return *n;
  throw BadFile("the index has \"" + s + "\" for a number");
}

IndexCache::IndexCache(std::string kind, const std::string& path, const std::string& directory,
                       const std::string& tag)
    : kind_("skein index of " + std::move(kind)), path_(fs::absolute(path).lexically_normal().string()) {
  places_.push_back(
      text(directory, "/.skein-index", tag.empty() ? "" : "-", tag.empty() ? "" : fingerprint(tag)));
  if (const std::string own = cache_directory(); !own.empty())
    places_.push_back(own + "/index-" + fingerprint(kind_ + path_ + tag));
}

// In a cache beside the data the path is not compared, because the data may now be mounted elsewhere.
std::optional<IndexCache::Found> IndexCache::load() const {
  for (size_t i = 0; i < places_.size(); ++i) try {
      FileReader file(places_[i]);
      if (!file.is_ours()) continue;
      const std::string packed = file.rest();
      const Bytes all = unpacked({packed.begin(), packed.end()}, places_[i]);
      const std::string bytes(all.begin(), all.end());
      const size_t kind = bytes.find('\0'), path = bytes.find('\0', kind + 1);
      if (kind == std::string::npos || path == std::string::npos || bytes.substr(0, kind) != kind_) continue;
      if (i > 0 && bytes.substr(kind + 1, path - kind - 1) != path_) continue;
      return Found{places_[i], bytes.substr(path + 1)};
    } catch (const BadFile&) {  // there is none, or it is damaged: it is made again
    }
  return {};
}

std::string IndexCache::store(const std::string& bytes) const {
  Record all;
  all.put(kind_), all.put(path_);
  const std::string packed = gzip(all.bytes() + bytes);
  for (size_t i = 0; i < places_.size(); ++i) try {
      if (is_anothers(places_[i])) continue;
      std::error_code code;
      if (i > 0) fs::create_directories(fs::path(places_[i]).parent_path(), code);
      write_file(places_[i], packed, Writing::kCache);
      return places_[i];
    } catch (const FileError&) {  // the next place may work
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
