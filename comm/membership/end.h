// End: how a run has ended; members that have completed it tell the others.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base.h"

namespace skein::comm {

struct End {
  int64_t step = 0;          // steps taken
  bool interrupted = false;  // it was stopped and can be resumed
  bool operator==(const End&) const = default;

  // The letter that carries it; newcomers parse it by read().
  std::string write() const;
  static std::optional<End> read(const std::string& bytes);  // nothing if the bytes are no such letter
};

// Thrown to a process that waits for an epoch after the run has ended.
struct RunEnded : Error {
  explicit RunEnded(const End& e)
      : Error(text("the run has ended after ", e.step, " steps; this worker is no longer needed")), end(e) {}
  End end;
};

}  // namespace skein::comm
