// gzip or plain, through zlib; raw reads for image files.
#include "data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace skein::data {

namespace fs = std::filesystem;

Bytes read_unpacked(const std::string& path) {
  if (!is_file(path)) throw BadFile(path + ": no such file");
  std::error_code code;
  if (fs::file_size(path, code) == 0 && !code) throw BadFile(path + ": the file is empty; fetch it again");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (!file) throw BadFile(path + ": " + std::strerror(errno));
  gzbuffer(file.get(), 1 << 17);
  Bytes bytes;
  constexpr unsigned kStep = 1 << 22;
  for (;;) {
    const size_t had = bytes.size();
    bytes.resize(had + kStep);
    const int got = gzread(file.get(), bytes.data() + had, kStep);
    bytes.resize(had + size_t(std::max(got, 0)));
    if (got < int(kStep)) break;
  }
  int status = Z_OK;
  const std::string why = gzerror(file.get(), &status);
  if (status == Z_BUF_ERROR)
    throw BadFile(path + ": truncated: the compressed data ends early; fetch it again");
  if (status != Z_OK && status != Z_STREAM_END)
    throw BadFile(path + ": damaged: " + (status == Z_ERRNO ? std::strerror(errno) : why) +
                  "; fetch it again");
  if (bytes.empty()) throw BadFile(path + ": the file is empty once unpacked; fetch it again");
  return bytes;
}

bool read_raw(const std::string& path, Bytes& bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat info;
  bool good = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
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

bool is_directory(const std::string& path) {
  std::error_code code;
  return fs::is_directory(path, code);
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
