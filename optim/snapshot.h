// Snapshot: a copy in memory of whatever a walk visits, to go back to.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <variant>

#include "engine/archive.h"

namespace skein::optim {

using Walk = std::function<void(Archive&)>;

class Snapshot {
 public:
  void take(const Walk&);     // copies every field the walk names; memory of the last time is used again
  void restore(const Walk&);  // writes them back; the walk must name the same fields
  bool operator==(const Snapshot&) const;  // bit for bit; waits for the device

 private:
  class Saver;
  class Loader;
  std::map<std::string, std::variant<std::monostate, Tensor, int64_t, double, std::string>> fields_;
};

// For steps that have to write state before their last wait: destroyed before keep(), as an exception would
// have it, it puts everything back, so that a whole step is left behind.
class Undo {
 public:
  Undo(Snapshot& s, Walk walk) : snapshot_(s), walk_(std::move(walk)) { snapshot_.take(walk_); }
  ~Undo() {
    if (!kept_) snapshot_.restore(walk_);
  }
  Undo(const Undo&) = delete;
  void keep() { kept_ = true; }

 private:
  Snapshot& snapshot_;
  Walk walk_;
  bool kept_ = false;
};

}  // namespace skein::optim
