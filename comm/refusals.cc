// What was refused, in words.
#include "comm/refusals.h"

namespace skein::comm {

Refused& Refused::operator+=(const Refused& r) {
  callers += r.callers, messages += r.messages, forged += r.forged, truncated += r.truncated;
  datagrams += r.datagrams;
  return *this;
}

std::string Refused::words() const {
  std::string all;
  const auto add = [&](int64_t n, const char* what, const char* more = "") {
    if (n > 0) all += (all.empty() ? "" : ", ") + std::to_string(n) + ' ' + what + (n == 1 ? "" : "s") + more;
  };
  add(callers, "caller", " without this job's key");
  add(messages, "foreign message");
  add(forged, "forged message");
  add(truncated, "truncated message");
  add(datagrams, "forged or replayed datagram");
  return all;
}

}  // namespace skein::comm
