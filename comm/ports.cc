// Reads a range of ports.
#include "comm/ports.h"

#include <sstream>

#include "engine/base.h"

namespace skein::comm {

PortRange parse_port_range(const std::string& word) {
  if (word.empty()) return {};
  PortRange r;
  char dash = 0;
  std::istringstream in(word);
  if (!(in >> r.first >> dash >> r.last) || dash != '-' || in.peek() != EOF || r.first < 1 ||
      r.last > kLastPort || r.first > r.last)
    throw BadOption(text("--port-range ", word, ": two ports from 1 to 65535, as in 4000-4100"));
  return r;
}

}  // namespace skein::comm
