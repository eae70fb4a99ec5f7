// The ports that a job may listen at.
#pragma once
#include <string>

namespace skein::comm {

constexpr int kLastPort = 65535;

// 0-0: any that is free.
struct PortRange {
  int first = 0, last = 0;
  bool any() const { return last == 0; }
};
PortRange parse_port_range(const std::string&);  // "4000-4100", empty: any; throws BadOption

}  // namespace skein::comm
