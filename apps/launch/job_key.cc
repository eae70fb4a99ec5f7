// Reads and makes job keys.
#include "apps/launch/job_key.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apps/base/environment.h"
#include "comm/join/rendezvous.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using comm::Fd;

std::string read_key(int fd, const std::string& from) {
  std::string key(comm::kJobKeyBytes, 0);
  if (pread(fd, key.data(), key.size(), 0) != ssize_t(key.size()))
    throw BadFile(
        text(from, ": a job key has ", key.size(), " bytes; make one with: head -c 32 /dev/urandom > FILE"));
  return key;
}

std::string key_of_file(const std::string& path) {
  const Fd f(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!f) throw BadFile(text(path, ": the job key cannot be read: ", std::strerror(errno)));
  check_private(f.get(), path);
  return read_key(f.get(), path);
}

}  // namespace

void check_private(int fd, const std::string& path) {
  struct stat s {};
  if (fstat(fd, &s) != 0 || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
    throw BadFile(path + ": a job key must be yours and readable by you alone; chmod 600 " + path);
}

std::optional<std::string> given_job_key() {
  if (const auto fd = number("SKEIN_KEY_FD")) {
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return read_key(*fd, text("SKEIN_KEY_FD=", *fd));
  }
  if (const auto path = variable("SKEIN_KEY_FILE")) return key_of_file(*path);
  return {};
}

std::string key_of_start(const std::string& key, const std::string& start) {
  CHECK(key.size() == comm::kJobKeyBytes, key.size());
  const auto raw = [](const std::string& s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  std::string own(comm::kJobKeyBytes, 0);
  crypto_generichash(reinterpret_cast<unsigned char*>(own.data()), own.size(), raw(start), start.size(),
                     raw(key), key.size());
  return own;
}

// Workers started by hand on one host, or with one home directory, share this key. The first one makes it:
// link() succeeds for only one.
std::string job_key_of_home() {
  const std::optional<std::string> home = variable("HOME");
  if (!home)
    throw BadOption(
        "workers started by RANK and WORLD_SIZE need a job key: set SKEIN_KEY_FILE to a file of 32 random "
        "bytes, the same for all, readable by you alone");
  const fs::path dir = fs::path(*home) / ".config" / "skein", path = dir / "job-key";
  std::error_code none;
  if (!fs::exists(path, none)) {
    fs::create_directories(dir, none);
    const std::string aside = text(path.string(), '.', getpid());
    const std::string key = comm::random_bytes(comm::kJobKeyBytes);
    const Fd f(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const ssize_t n = f ? write(f.get(), key.data(), key.size()) : -1;
    if (n != ssize_t(key.size())) {
      const std::string why = n < 0 ? std::strerror(errno) : "the disk is full";
      if (f) unlink(aside.c_str());
      throw BadFile(text(aside, ": the job key cannot be written: ", why));
    }
    [[maybe_unused]] const int made = link(aside.c_str(), path.c_str());
    unlink(aside.c_str());
  }
  return key_of_file(path.string());
}

}  // namespace skein::apps
