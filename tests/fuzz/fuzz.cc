// The table of harnesses, and where they put files.
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace skein::fuzz {

namespace fs = std::filesystem;

const std::vector<Harness>& harnesses() {
  static const std::vector<Harness> all = {
#define HARNESS(name, longest, bytes) {#name, longest, bytes, name},
#include "tests/fuzz/harnesses.def"
#undef HARNESS
  };
  return all;
}

const Harness* find_harness(const std::string& name) {
  for (const Harness& h : harnesses())
    if (h.name == name) return &h;
  return nullptr;
}

bool is_of_check(std::string_view message) {
  const size_t check = message.find(": CHECK(");
  const std::string_view place = message.substr(0, std::min(check, message.size()));
  return check != message.npos && place.find(' ') == place.npos && !place.starts_with(scratch()) &&
         (place.find(".cc:") != place.npos || place.find(".h:") != place.npos ||
          place.find(".cu:") != place.npos);
}

const std::string& scratch() {
  struct Place {
    std::string path;
    Place() {
      path = (fs::temp_directory_path() / "skein-fuzz-XXXXXX").string();
      CHECK(::mkdtemp(path.data()) != nullptr, path);
      ::setenv("HOME", path.c_str(), 1);
      ::setenv("XDG_CACHE_HOME", (path + "/cache").c_str(), 1);
    }
    ~Place() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Place place;
  return place.path;
}

std::string put(const std::string& name, const std::string& bytes) {
  std::string path = scratch() + '/' + name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(file >= 0 && ::write(file, bytes.data(), bytes.size()) == ssize_t(bytes.size()), path);
  ::close(file);
  return path;
}

}  // namespace skein::fuzz
