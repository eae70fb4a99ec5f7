// GivenFlags: the flags of a command line and their texts, which nothing has interpreted yet.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "apps/config/config.h"

namespace skein::apps {

// Names are those of the table and of the flags that select an action, without dashes.
class GivenFlags {
 public:
  // Throws BadOption, with the nearest name, if a word is no flag of the table or of an action.
  GivenFlags(int argc, const char* const* argv, const Flags&);

  bool has(const std::string& name) const { return texts_.contains(name); }
  // Its text; empty if the flag is not given, or without one. Throws BadOption if it is
  // given twice, differently.
  std::string text_of(const std::string& name) const;
  std::vector<std::string> all_of(const std::string& name) const;  // the texts of a flag that takes several
  const std::string& usage() const { return usage_; }  // what --help prints; empty if it was not asked for

 private:
  std::map<std::string, std::vector<std::string>> texts_;
  std::string usage_;
};

}  // namespace skein::apps
