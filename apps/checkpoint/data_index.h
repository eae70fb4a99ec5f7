// DataIndex: which images a training used, so that a resume can notice changes.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace skein::apps {

struct DataIndex {
  struct Part {
    int64_t images = 0;
    std::string hash;  // BLAKE2b-256 of names below the data's root and labels, in order; "" if unknown
    bool operator==(const Part&) const = default;
  };
  Part train, test;
};

DataIndex index_of(const data::Split&);

// Lines that say what has changed since; none if nothing has or it is unknown. `split` is the current data.
std::vector<std::string> changes_since(const DataIndex& then, const DataIndex& now, const data::Split& split);

}  // namespace skein::apps
