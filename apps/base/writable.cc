// Asks the system about the directory.
#include "apps/base/writable.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/words/file.h"

namespace skein::apps {

void check_writable(const std::string& path) {
  if (is_directory(path)) throw BadFile(path + ": is a directory; name a file in it");
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0)
    throw BadFile(text(path, ": this file cannot be made: ", std::strerror(errno)));
}

}  // namespace skein::apps
