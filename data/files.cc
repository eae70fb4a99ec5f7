// gzip or plain, through zlib; raw reads for image files.
#include "data/files.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/words/file.h"
#include "engine/words/host_memory.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

// Pictures shrink to a half or a tenth, lists of names to a fifth. Deflate itself goes up to a thousand.
constexpr size_t kMostExpansion = 100, kAlwaysAllowed = size_t(1) << 28;

bool is_gzip(const Bytes& file, size_t at) {
  return file.size() >= at + 2 && file[at] == 0x1F && file[at + 1] == 0x8B;
}

// A stream of gzip members, unpacked in memory.
class Inflater {
 public:
  Inflater(const Bytes& file, const std::string& path) : file_(file), path_(path) {
    CHECK(inflateInit2(&z_, 15 + 16) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&z_); }
  Inflater(const Inflater&) = delete;

  // Unpacks some bytes, maybe none, into what `to` has from `used` on, which moves. Returns false at the end
  // of the last member.
  bool next(Bytes& to, size_t& used) {
    if (z_.avail_in == 0) feed();
    z_.next_out = to.data() + used, z_.avail_out = uInt(to.size() - used);
    const int status = inflate(&z_, Z_NO_FLUSH);
    used = to.size() - z_.avail_out;
    if (status == Z_STREAM_END) return begin_member();
    if (status == Z_BUF_ERROR && z_.avail_in == 0 && fed_ == file_.size())
      throw BadFile(path_ + ": truncated: the compressed data ends early; fetch it again");
    if (status != Z_OK && status != Z_BUF_ERROR)
      throw BadFile(path_ + ": damaged: " + (z_.msg ? z_.msg : "it cannot be unpacked") + "; fetch it again");
    return true;
  }

 private:
  void feed() {  // zlib counts with 32 bits
    const size_t piece = std::min(file_.size() - fed_, size_t(1) << 30);
    z_.next_in = const_cast<Bytef*>(file_.data() + fed_), z_.avail_in = uInt(piece);
    fed_ += piece;
  }
  // What follows the last member and is none itself is ignored, as by gunzip.
  bool begin_member() { return is_gzip(file_, fed_ - z_.avail_in) && inflateReset(&z_) == Z_OK; }

  const Bytes& file_;
  const std::string& path_;
  z_stream z_{};
  size_t fed_ = 0;
};

}  // namespace

Bytes read_whole(const std::string& path) {
  if (!is_file(path)) throw BadFile(path + ": no such file");
  Bytes bytes;
  if (!read_raw(path, host_memory(), bytes))
    throw BadFile(path + ": cannot be read: " + std::strerror(errno));
  if (bytes.empty()) throw BadFile(path + ": the file is empty; fetch it again");
  return bytes;
}

Bytes unpacked(const Bytes& file, const std::string& path, size_t most) {
  if (!is_gzip(file, 0)) return {file.begin(), file.begin() + int64_t(std::min(most, file.size()))};
  const size_t limit = std::max(kAlwaysAllowed, file.size() * kMostExpansion);
  const size_t step = std::clamp<size_t>(4 * file.size(), 1 << 12, 1 << 22);
  Inflater gzip(file, path);
  Bytes bytes;
  size_t used = 0;
  for (bool more = true; more && used < most;) {
    if (used == bytes.size()) bytes.resize(used + std::min(step, most - used));
    more = gzip.next(bytes, used);
    if (more && used > limit)
      throw BadFile(text(path, ": unpacks to more than ", limit, " bytes from ", file.size(),
                         ", which no data set does; unpack it yourself (gunzip) if it is right"));
  }
  bytes.resize(used);
  if (bytes.empty() && most > 0) throw BadFile(path + ": the file is empty once unpacked; fetch it again");
  return bytes;
}

Bytes read_unpacked(const std::string& path) { return unpacked(read_whole(path), path); }

bool read_raw(const std::string& path, int64_t most, Bytes& bytes) {
  const int file = open_to_read(path);
  if (file < 0) return false;
  struct stat info;
  bool good = fstat(file, &info) == 0 && info.st_size <= most;
  errno = good ? EIO : EFBIG;  // if it ends early now, or if it is too large
  if (good) bytes.resize(size_t(info.st_size));
  for (size_t at = 0; good && at < bytes.size();) {
    const ssize_t got = read(file, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    good = got > 0;
    at += size_t(std::max<ssize_t>(got, 0));
  }
  close(file);
  return good;
}

bool is_file(const std::string& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

void need_directory(const std::string& path, const std::string& what) {
  if (is_directory(path)) return;
  throw BadFile(
      path + (is_file(path) ? ": is a file, not the directory of " : ": no such directory; it should hold ") +
      what);
}

}  // namespace skein::data
