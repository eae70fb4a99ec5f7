// Directories of a data set's splits, known by the names that people give them.
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

// Names below the directory, "" where there is none of that kind. Upper and lower case are the same.
struct SplitDirectories {
  std::string train;                // train or training
  std::string test;                 // the first there is of val, valid, validation, test, testing
  std::vector<std::string> unused;  // the directories beside those two, sorted

  bool none() const { return train.empty() && test.empty(); }
  bool both() const { return !train.empty() && !test.empty(); }
};

// BadFile if the directory cannot be listed, or holds both train/ and training/, or Val/ and val/.
SplitDirectories find_splits(const std::string& directory);

// "train/ but none of val/, valid/, ...": what an error says of a directory that has one of the two.
std::string missing_split(const SplitDirectories&);

}  // namespace skein::data
