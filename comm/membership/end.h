// End: how a run has ended, as those who have completed it tell those who have not.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base.h"

namespace skein::comm {

struct End {
  int64_t step = 0;          // steps taken
  bool interrupted = false;  // it was stopped, and goes on another time
  bool operator==(const End&) const = default;

  // The letter that tells of it, which a newcomer reads with read().
  std::string write() const;
  static std::optional<End> read(const std::string& bytes);  // nothing if the bytes are no such letter
};

// Whoever waits for an epoch that nobody needs any more gets this.
struct RunEnded : Error {
  explicit RunEnded(const End& e)
      : Error(text("the run has ended after ", e.step, " steps; this worker is no longer needed")), end(e) {}
  End end;
};

}  // namespace skein::comm
