// Reads and makes job keys.
#include "apps/launch/job_key.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/base/environment.h"
#include "apps/base/printable.h"
#include "comm/join/rendezvous.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

using comm::Fd;

comm::Secret read_key(int fd, const std::string& from) {
  return comm::Secret::made(comm::kJobKeyBytes, [&](auto* to) {
    if (pread(fd, to, comm::kJobKeyBytes, 0) != ssize_t(comm::kJobKeyBytes))
      throw BadFile(text(from, ": a job key has ", comm::kJobKeyBytes,
                         " bytes; make one with: head -c 32 /dev/urandom > FILE"));
  });
}

comm::Secret key_of_file(const std::string& path) {
  const Fd f(open_to_read(path));
  if (!f)
    throw BadFile(text(
        path, ": the job key cannot be read: ", errno == ESPIPE ? "it is no file" : std::strerror(errno)));
  check_private(f.get(), path);
  return read_key(f.get(), path);
}

}  // namespace

void check_private(int fd, const std::string& path) {
  struct stat s {};
  if (fstat(fd, &s) != 0 || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
    throw BadFile(path + ": a job key must be yours and readable by you alone; chmod 600 " +
                  shell_word(path));
}

std::optional<comm::Secret> given_job_key() {
  if (const auto fd = number("SKEIN_KEY_FD")) {
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return read_key(*fd, text("SKEIN_KEY_FD=", *fd));
  }
  if (const auto path = variable("SKEIN_KEY_FILE")) return key_of_file(*path);
  return {};
}

comm::Secret key_of_start(const comm::Secret& key, const std::string& start) {
  CHECK(key.size() == comm::kJobKeyBytes, key.size());
  return comm::Secret::made(comm::kJobKeyBytes, [&](auto* to) {
    crypto_generichash(to, comm::kJobKeyBytes, reinterpret_cast<const unsigned char*>(start.data()),
                       start.size(), key.data(), key.size());
    comm::wipe_stack();
  });
}

}  // namespace skein::apps
