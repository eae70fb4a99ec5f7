// DataIndex: which images a training had, for a resume to notice that they are others.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace skein::apps {

struct DataIndex {
  struct Part {
    int64_t images = 0;
    std::string hash;  // BLAKE2b-256 of names below the data's root and labels, in order; "" where not known
    bool operator==(const Part&) const = default;
  };
  Part train, test;
};

DataIndex index_of(const data::Split&);

// In lines, what has changed since; none if nothing has or it is not known. `split` is today's.
std::vector<std::string> changes_since(const DataIndex& then, const DataIndex& now, const data::Split& split);

}  // namespace skein::apps
