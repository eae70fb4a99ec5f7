// Headers of 512 bytes, each checked by its sum. POSIX.1-2001 (pax); GNU's long names and large numbers.
#include "data/sources/tar.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "data/pictures/picture.h"
#include "engine/words/file.h"

namespace skein::data {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kWindow = 8 * kBlock;  // reads a header, a label and the next header at once
constexpr int64_t kLongestAttributes = 1 << 20;

bool read_all(int file, int64_t offset, int64_t n, uint8_t* to) {
  while (n > 0) {
    const ssize_t got = pread(file, to, size_t(n), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    n -= got, offset += got, to += got;
  }
  return true;
}

std::string field(const uint8_t* at, size_t n) {
  return {reinterpret_cast<const char*>(at), strnlen(reinterpret_cast<const char*>(at), n)};
}

// Octal digits or, if the first bit is set, a binary number. Returns -1 if it is neither.
int64_t number(const uint8_t* at, size_t n) {
  if (at[0] & 0x80) {
    uint64_t v = at[0] & 0x3F;
    for (size_t i = 1; i < n; ++i) {
      if (v >> 54) return -1;
      v = v << 8 | at[i];
    }
    return int64_t(v);
  }
  int64_t v = 0;
  size_t i = 0;
  while (i < n && at[i] == ' ') ++i;
  for (; i < n && at[i] >= '0' && at[i] <= '7'; ++i) v = v * 8 + (at[i] - '0');
  for (; i < n; ++i)
    if (at[i] != ' ' && at[i] != 0) return -1;
  return v;
}

bool has_right_sum(const uint8_t* head) {
  int64_t sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : head[i];
  return sum == number(head + 148, 8);
}

// The attributes in a pax header for the member that follows: records of "LENGTH KEY=VALUE\n".
struct Attributes {
  std::optional<std::string> path;
  std::optional<int64_t> size;
};
bool parse(const std::string& records, Attributes& a) {
  for (size_t at = 0; at < records.size();) {
    if (records[at] == 0) break;
    size_t length = 0;
    const char* end = records.data() + records.size();
    const auto [stop, code] = std::from_chars(records.data() + at, end, length);
    const size_t key = size_t(stop - records.data()) + 1;
    if (code != std::errc() || stop == end || *stop != ' ' || length > records.size() - at ||
        at + length <= key)
      return false;
    const std::string record = records.substr(key, at + length - key - 1);
    const size_t equals = record.find('=');
    if (equals == std::string::npos) return false;
    const std::string value = record.substr(equals + 1);
    if (record.starts_with("path=")) a.path = value;
    if (record.starts_with("size=")) {
      int64_t n = -1;
      const char* last = value.data() + value.size();
      if (const auto [stop, code] = std::from_chars(value.data(), last, n); stop != last || n < 0)
        return false;
      a.size = n;
    }
    at += length;
  }
  return true;
}

}  // namespace

struct Tar::Header {
  char type = 0;
  std::string name = {};
  int64_t size = 0;
  bool end = false;
};

Tar::Tar(const std::string& path) : path_(path), file_(open_to_read(path)) {
  struct stat info;
  if (file_ < 0 && (errno == ESPIPE || errno == EISDIR))
    throw BadFile(path + ": is not a file; shards are read at random offsets");
  if (file_ < 0 || fstat(file_, &info) != 0) throw BadFile(path + ": " + std::strerror(errno));
  size_ = info.st_size;
}

Tar::~Tar() {
  if (file_ >= 0) close(file_);
}

void Tar::refuse(const std::string& why) const { throw BadFile(path_ + ": " + why); }

const uint8_t* Tar::bytes(int64_t offset, int64_t n) {
  if (offset < window_at_ || offset + n > window_at_ + int64_t(window_.size())) {
    window_at_ = offset;
    window_.resize(size_t(std::min(std::max(n, kWindow), size_ - offset)));
    if (int64_t(window_.size()) < n || !read_all(file_, offset, int64_t(window_.size()), window_.data()))
      refuse(text("cannot be read at byte ", offset));
  }
  return window_.data() + (offset - window_at_);
}

std::string Tar::content(int64_t offset, int64_t n) {
  const uint8_t* at = bytes(offset, n);
  return {reinterpret_cast<const char*>(at), size_t(n)};
}

Tar::Header Tar::header_at(int64_t at) {
  if (const uint8_t* magic = at == 0 && size_ >= 2 ? bytes(0, 2) : nullptr;
      magic && magic[0] == 0x1F && magic[1] == 0x8B)
    refuse("is compressed; shards are read at random offsets, so unpack it (gunzip)");
  if (at + kBlock > size_)
    refuse(text("truncated: it stops at byte ", size_,
                " without the empty block that ends a tar archive; fetch it ", "again"));
  const uint8_t* h = bytes(at, kBlock);
  if (std::all_of(h, h + kBlock, [](uint8_t b) { return b == 0; })) return {.end = true};
  if (!has_right_sum(h))
    refuse(at == 0 ? "is not a tar archive" : text("damaged: no header where one should be, at byte ", at));
  Header r{char(h[156]), field(h, 100), number(h + 124, 12)};
  // GNU's format has times in place of the prefix.
  const bool ustar = std::memcmp(h + 257, "ustar\0", 6) == 0;
  if (const std::string prefix = field(h + 345, 155); ustar && !prefix.empty())
    r.name = prefix + '/' + r.name;
  if (r.size < 0) refuse(text("damaged: ", r.name, " has no size, at byte ", at));
  return r;
}

bool Tar::next(TarMember& m) {
  Attributes attributes;
  for (;;) {
    Header h = header_at(at_);
    if (h.end) return false;
    const bool about_next = h.type == 'x' || h.type == 'L' || h.type == 'K' || h.type == 'g';
    if (!about_next && attributes.size) h.size = *attributes.size;
    if (!about_next && attributes.path) h.name = *attributes.path;
    const int64_t from = at_ + kBlock;
    if (h.size > size_ - from)
      refuse(text("truncated: ", h.name, " reaches to byte ", uint64_t(from) + uint64_t(h.size),
                  " of a file that has ", size_, "; fetch it again"));
    at_ = std::min(from + (h.size + kBlock - 1) / kBlock * kBlock, size_);
    if (about_next) {
      if (h.size > kLongestAttributes)
        refuse(text("damaged: attributes of ", h.size, " bytes at byte ", from));
      if (h.type == 'x' && !parse(content(from, h.size), attributes))
        refuse(text("damaged: attributes that make no sense at byte ", from));
      if (h.type == 'L') attributes.path = content(from, h.size).c_str();  // ends with a zero byte
      continue;
    }
    const bool regular = h.type == '0' || h.type == 0 || h.type == '7';
    attributes = {};
    if (!regular || h.name.ends_with('/')) continue;
    m = {std::move(h.name), from, h.size};
    return true;
  }
}

std::string Tar::read(const TarMember& m) { return content(m.offset, m.size); }

bool read_part(const std::string& path, int64_t offset, int64_t n, Bytes& bytes) {
  const int file = n <= kMostPictureBytes ? open_to_read(path) : -1;
  if (file < 0) return false;
  bytes.resize(size_t(n));
  const bool good = read_all(file, offset, n, bytes.data());
  close(file);
  return good;
}

}  // namespace skein::data
