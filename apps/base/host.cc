// Reads the host's name, its clock, and files of /proc.
#include "apps/base/host.h"

#include <unistd.h>

#include <fstream>

#include "comm/clock.h"

namespace skein::apps {

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

double wall_clock() { return comm::unix_seconds(); }

std::string process_state(long pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const size_t name = line.rfind(')');  // which may hold spaces and brackets itself
  return name == std::string::npos || name + 2 > line.size() ? "" : line.substr(name + 2);
}

std::string value_in(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) {
      const size_t at = line.find_first_of(":=");
      const size_t from = at == std::string::npos ? at : line.find_first_not_of(" \t\"", at + 1);
      if (from != std::string::npos) return line.substr(from, line.find_last_not_of(" \t\"") + 1 - from);
    }
  return "";
}

}  // namespace skein::apps
