// Shards: tar archives whose members of one key (a/b.jpg, a/b.cls) are one sample, as WebDataset lays data
// out (Aizman, Maltby & Breuel 2019).
#pragma once
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

struct ShardSample {
  std::string name;  // of the member with the image, "a/b.jpg"
  int64_t offset = 0, size = 0;
  int32_t label = 0;
};
struct Shard {
  std::string path;
  std::vector<ShardSample> samples;  // in the order of the archive
};

// The files a pattern names: `{000..146}` counts with as many digits, `{a,b}` lists, `*`, `?` and
// `[...]` are matched; in the order the braces give, matches sorted. BadFile if one that is named is
// missing or none matches.
std::vector<std::string> expand_shards(const std::string& pattern);

// Looks all shards through, in parallel, or takes what an IndexCache beside the first of them knows of those
// that have not changed since. `pattern` is what the user wrote. Adds a line about it to `notes`. BadFile,
// naming shard and sample: a shard that is damaged or truncated, a sample that lacks image or label, a label
// that is no whole number of 0 or more, no samples.
std::vector<Shard> index_shards(const std::string& pattern, const std::vector<std::string>& paths,
                                std::vector<std::string>* notes);

}  // namespace skein::data
