// Line: a connection whose two ends have greeted each other.
#pragma once
#include <optional>

#include "comm/join/sockets.h"
#include "comm/seal/greeting.h"

namespace skein::comm {

struct Line {
  Fd socket;
  Cipher out, in;

  // All bytes or none; false on hang-up or deadline.
  bool write(const std::string&, Clock::time_point deadline);
  // n bytes that were written at once; false also if they were changed on their way.
  bool read(std::string&, size_t n, Clock::time_point deadline);

  // A string after its length. The other end may send an error message instead, which read_string throws as
  // Timeout; it is also false if the string is longer than `most` bytes.
  bool write_string(const std::string&, Clock::time_point deadline);
  bool write_trouble(const std::string&);
  bool read_string(std::string&, Clock::time_point deadline, uint64_t most = uint64_t(1) << 30);
};

// The caller's greeting. Empty: the called end did not answer in time, hung up, or is not that rank of this
// job. `refused`: it answered, but not as one that believes this rank; to call again is in vain.
std::optional<Line> call(Fd, const Credentials&, Rank to, Purpose, Clock::time_point salted_by,
                         Clock::time_point proved_by, bool* refused = nullptr);

}  // namespace skein::comm
