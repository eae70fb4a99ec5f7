// Output: what wards write to stdout and stderr, line by line.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "apps/launch/crew/ward.h"

namespace skein::apps {

class Output {
 public:
  // Receives each line of a ward's stdout or stderr; returns true if the line was for us and
  // must not be shown.
  std::function<bool(Ward&, const std::string& line, bool is_error)> heard;
  // Shows what the ward has written; equal lines of several wards on stderr once. Does not wait.
  void pass_on(Ward&);

 private:
  void hear(Ward&, comm::Fd&, std::string& line, bool is_error);
  void show(Ward&, const std::string& line, bool is_error);
  std::set<std::string> shown_;
};

}  // namespace skein::apps
