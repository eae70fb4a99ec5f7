// Snapshot: a copy in memory of all that a walk visits.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <variant>

#include "engine/archive.h"

namespace skein::optim {

using Walk = std::function<void(Archive&)>;

// Where something is that travels to all workers. States contain it as a number.
enum Travel : int64_t { kAtHome = 0, kUnderWay = 1, kArrived = 2 };

class Snapshot {
 public:
  void take(const Walk&);     // copies every field the walk names; memory of the last time is used again
  void restore(const Walk&);  // writes them back; the walk must name the same fields
  // Adds what was under way when this was taken and has arrived since. The walk visits a Travel and then its
  // values, any number of times. They are added if that Travel is kUnderWay here, else skipped.
  void complete(const Walk&);

  using Fields = std::map<std::string, std::variant<std::monostate, Tensor, int64_t, double, std::string>>;
  const Fields& fields() const { return fields_; }

 private:
  class Saver;
  class Loader;
  class Completer;
  Fields fields_;
};

}  // namespace skein::optim
