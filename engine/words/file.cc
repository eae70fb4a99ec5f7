// Writing with the system's calls, so that every failure is seen and flushing means what it says.
#include "engine/words/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/words/host_memory.h"

namespace skein {
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
  throw FileError(text(path, ": cannot ", what, ": ", std::strerror(error), advice(error)), error);
}

// What is read is not chosen by an --output.
[[noreturn]] void refuse_to_read(const std::string& path, const char* what, int error) {
  const char* why = error == ESPIPE ? "it is a pipe, a socket or a device" : std::strerror(error);
  throw FileError(text(path, ": cannot ", what, ": ", why, error == EIO ? advice(error) : ""), error);
}

[[noreturn]] void refuse_size(const std::string& path, int64_t most) {
  throw FileError(text(path, ": cannot read: larger than ", most, " bytes, so it is not what it should be"),
                  EFBIG);
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

// A fixed name means that crashes leave at most one durable file behind; concurrent writers need a name each.
std::string name_aside(const std::string& path, Writing how) {
  static std::atomic<int> count{0};
  return how == Writing::kDurable ? path + ".partial" : text(path, '.', ::getpid(), '.', ++count);
}

// Removes a file that a dead or stopped process has begun; the latter goes on writing it without a name.
void unlink_file(const std::string& path) {
  struct stat what {};
  if (::lstat(path.c_str(), &what) == 0 && S_ISREG(what.st_mode)) ::unlink(path.c_str());
}

bool is_same_file(int fd, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace

FileWriter::FileWriter(const std::string& path, Writing how)
    : path_(path), aside_(name_aside(path, how)), how_(how) {
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC;
  if (how == Writing::kDurable) unlink_file(aside_);
  if (how == Writing::kPrivate) {  // another user may have made the file in order to read it
    ::unlink(aside_.c_str());
    flags |= O_EXCL;
  }
  const mode_t mode = how == Writing::kPrivate ? 0600 : how == Writing::kCache ? 0644 : 0666;
  fd_ = ::open(aside_.c_str(), flags, mode);
  if (fd_ < 0) refuse(aside_, "create this file", errno);
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  struct stat what {};
  // Only a regular file that is still ours is removed.
  const bool ours = ::fstat(fd_, &what) == 0 && S_ISREG(what.st_mode) && is_same_file(fd_, aside_);
  ::close(fd_);
  if (ours) ::unlink(aside_.c_str());
}

void FileWriter::write(const void* data, size_t bytes) {
  CHECK(fd_ >= 0, "closed already:", path_);
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(aside_, "write", errno);
    at += n;
    bytes -= size_t(n);
  }
}

void FileWriter::close() {
  CHECK(fd_ >= 0, "closed already:", path_);
  const bool flush = how_ != Writing::kCache;
  if (flush && ::fsync(fd_) != 0) refuse(aside_, "flush to the disk", errno);
  if (how_ == Writing::kDurable && is_taken_over()) return void(::close(std::exchange(fd_, -1)));
  if (::close(std::exchange(fd_, -1)) != 0) give_up(aside_, "write");
  if (::rename(aside_.c_str(), path_.c_str()) != 0) give_up(path_, "put the finished file here");
  if (flush) sync_directory(parent_of(path_));
}

// Whether another process has since begun the same file or put its own in place. A worker that was stopped
// while it wrote, and given up by the others, must not overwrite their file.
bool FileWriter::is_taken_over() const {
  struct stat open {
  }, named{};
  if (::fstat(fd_, &open) != 0 || !S_ISREG(open.st_mode) || is_same_file(fd_, aside_)) return false;
  return ::lstat(aside_.c_str(), &named) == 0 || ::stat(path_.c_str(), &named) == 0;
}

void FileWriter::give_up(const std::string& path, const char* what) {
  const int error = errno;
  ::unlink(aside_.c_str());
  refuse(path, what, error);
}

void write_file(const std::string& path, std::string_view bytes, Writing how) {
  FileWriter file(path, how);
  file.write(bytes.data(), bytes.size());
  file.close();
}

void look_afresh(std::filesystem::path directory) {
  namespace fs = std::filesystem;
  while (!directory.empty() && !skein::is_directory(directory) && directory != directory.parent_path())
    directory = directory.parent_path();
  std::error_code none;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory, none)) break;
}

int open_to_read(const std::string& path) {
  struct stat what {};
  const auto is_file = [&] {
    if (S_ISREG(what.st_mode)) return true;
    errno = S_ISDIR(what.st_mode) ? EISDIR : ESPIPE;
    return false;
  };
  // Even to open a device can have effects, so the look comes first. What it saw may be replaced since.
  if (::stat(path.c_str(), &what) != 0 || !is_file()) return -1;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || (::fstat(fd, &what) == 0 && is_file())) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

FileReader::FileReader(const std::string& path) : path_(path), fd_(open_to_read(path)) {
  if (fd_ < 0) refuse_to_read(path, "open this file", errno);
  struct stat what {};
  if (::fstat(fd_, &what) != 0) return;
  size_ = what.st_size;
  is_ours_ = (what.st_uid == ::geteuid() || what.st_uid == 0) && (what.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

FileReader::~FileReader() { ::close(fd_); }

size_t FileReader::read(void* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd_, static_cast<char*>(to) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_to_read(path_, "read", errno);
    if (n == 0) break;
    done += size_t(n);
  }
  return done;
}

std::string FileReader::rest(int64_t most) {
  const int64_t limit = std::min(most, host_memory());
  if (size_ > limit) refuse_size(path_, limit);
  std::string all;
  for (size_t step = size_t(std::max<int64_t>(size_, 4095)) + 1, had = 0;; had = all.size()) {
    all.resize(had + step);
    all.resize(had + read(all.data() + had, step));
    if (int64_t(all.size()) > limit) refuse_size(path_, limit);
    if (all.size() < had + step) return all;
    step = size_t(1) << 18;  // it has grown since, or its size is not known beforehand
  }
}

std::string read_file(const std::string& path, int64_t most) { return FileReader(path).rest(most); }

void read_pieces(const std::string& path, const std::function<void(const char* data, size_t bytes)>& f) {
  FileReader file(path);
  std::vector<char> piece(1 << 18);
  while (const size_t n = file.read(piece.data(), piece.size())) f(piece.data(), n);
}

bool is_directory(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

void make_directory(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) refuse(path, "make this directory", error.value());
  if (!is_directory(path)) refuse(path, "make this directory", ENOTDIR);
  if (::access(path.c_str(), W_OK | X_OK) != 0) refuse(path, "write in this directory", errno);
  if (made) sync_directory(parent_of(path));
}

void sync_directory(const std::string& path) {
  const Descriptor dir{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (dir.fd < 0 && errno == EACCES) return;  // what may be written but not read cannot be flushed
  if (dir.fd < 0) refuse(path, "open this directory", errno);
  // Some network file systems cannot flush a directory and return EINVAL; they write names through.
  if (::fsync(dir.fd) != 0 && errno != EINVAL) refuse(path, "flush this directory to the disk", errno);
}

std::string cache_directory() {
  const std::pair<const char*, const char*> places[] = {{"XDG_CACHE_HOME", "/skein"},
                                                        {"HOME", "/.cache/skein"}};
  for (const auto& [variable, below] : places)
    if (const char* at = std::getenv(variable); at && *at == '/') return text(at, below);
  return "";
}

}  // namespace skein
