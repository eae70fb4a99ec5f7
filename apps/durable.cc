// Writing with the system's calls, so that every failure is seen and flushing means what it says.
#include "apps/durable.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace skein::apps {
namespace {

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there or choose another --output";
    case EFBIG:
      return "; the file size limit (ulimit -f) or that of the file system is reached";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose an --output that this user may write to";
    case ENOTDIR:
    case EEXIST:
      return "; a part of the path is a file, choose another --output";
    case EIO:
      return "; the disk reports a fault";
    default:
      return "";
  }
}

[[noreturn]] void refuse(const std::string& path, const char* what, int error) {
  throw BadFile(text(path, ": cannot ", what, ": ", std::strerror(error), advice(error)));
}

// An open descriptor, closed at the end of the scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) refuse(path, "create this file", errno);
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  struct stat what {};
  const bool ours = ::fstat(fd_, &what) == 0 && S_ISREG(what.st_mode);  // never a device or a pipe
  ::close(fd_);
  if (ours) ::unlink(path_.c_str());
}

void FileWriter::write(const void* data, size_t bytes) {
  CHECK(fd_ >= 0, "closed already:", path_);
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path_, "write", errno);
    at += n;
    bytes -= size_t(n);
  }
}

void FileWriter::close() {
  CHECK(fd_ >= 0, "closed already:", path_);
  if (::fsync(fd_) != 0) refuse(path_, "flush to the disk", errno);
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) {
    const int error = errno;
    ::unlink(path_.c_str());
    refuse(path_, "write", error);
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  const std::string aside = path + ".partial";
  FileWriter file(aside);
  file.write(bytes.data(), bytes.size());
  file.close();
  rename_file(aside, path);
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    ::unlink(from.c_str());
    refuse(to, "put the finished file here", error);
  }
  sync_directory(parent_of(to));
}

namespace {

template <class F>
void for_each_piece(const std::string& path, F&& f) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) refuse(path, "open this file", errno);
  std::vector<char> piece(1 << 18);
  for (;;) {
    const ssize_t n = ::read(file.fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path, "read", errno);
    if (n == 0) return;
    f(piece.data(), size_t(n));
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  std::string all;
  for_each_piece(path, [&](const char* data, size_t bytes) { all.append(data, bytes); });
  return all;
}

std::string digest_of_file(const std::string& path) {
  Digest digest;
  for_each_piece(path, [&](const char* data, size_t bytes) { digest.add(data, bytes); });
  return digest.hex();
}

void make_directory(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) refuse(path, "make this directory", error.value());
  if (!std::filesystem::is_directory(path)) refuse(path, "make this directory", ENOTDIR);
  if (::access(path.c_str(), W_OK | X_OK) != 0) refuse(path, "write in this directory", errno);
  if (made) sync_directory(parent_of(path));
}

void sync_directory(const std::string& path) {
  const Descriptor dir{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (dir.fd < 0) refuse(path, "open this directory", errno);
  // Some network file systems cannot flush a directory and say EINVAL; they write names through.
  if (::fsync(dir.fd) != 0 && errno != EINVAL) refuse(path, "flush this directory to the disk", errno);
}

struct Digest::State {
  crypto_generichash_state blake;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  CHECK(sodium_init() >= 0, "libsodium does not start");
  crypto_generichash_init(&state_->blake, nullptr, 0, crypto_generichash_BYTES);
}
Digest::~Digest() = default;
void Digest::add(const void* data, size_t bytes) {
  crypto_generichash_update(&state_->blake, static_cast<const unsigned char*>(data), bytes);
}
std::string Digest::hex() {
  unsigned char sum[crypto_generichash_BYTES];
  crypto_generichash_final(&state_->blake, sum, sizeof sum);
  char digits[2 * sizeof sum + 1];
  return sodium_bin2hex(digits, sizeof digits, sum, sizeof sum);
}

}  // namespace skein::apps
