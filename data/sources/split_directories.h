// Finds the directories of a data set's splits by their usual names.
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

// Names below the directory, "" if there is none of that kind. Case does not matter.
struct SplitDirectories {
  std::string train;                // train or training
  std::string test;                 // the first that exists of val, valid, validation, test, testing
  std::vector<std::string> unused;  // the other directories, sorted

  bool none() const { return train.empty() && test.empty(); }
  bool both() const { return !train.empty() && !test.empty(); }
};

// Throws BadFile if the directory cannot be listed, or holds both train/ and training/, or Val/ and val/.
SplitDirectories find_splits(const std::string& directory);

// "train/ but none of val/, valid/, ...": what an error says of a directory that has one of the two.
std::string missing_split(const SplitDirectories&);

}  // namespace skein::data
