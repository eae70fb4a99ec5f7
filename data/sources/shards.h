// Shards: tar archives whose members of one key (a/b.jpg, a/b.cls) are one sample, as WebDataset lays data
// out (Aizman, Maltby & Breuel 2019).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/sources/index_cache.h"

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

// What the cache stores about a shard.
struct KnownShard {
  Times times;
  Shard shard;
};
// The content of a cache by the names of the files; empty if it is damaged.
std::multimap<std::string, KnownShard> parse_shard_index(const std::string& bytes);

// The files that a pattern names: `{000..146}` counts with as many digits, `{a,b}` lists, and `*`, `?` and
// `[...]` match. They come in the order of the braces, matches sorted. Throws BadFile if a named file is
// missing or a wildcard matches none.
std::vector<std::string> expand_shards(const std::string& pattern);

// Reads the headers of all shards in parallel; shards that have not changed since come from an IndexCache
// beside the first. `pattern` is what the user wrote. Adds a line about it to `notes`. Throws BadFile, naming
// shard and sample, if a shard is damaged or truncated, a sample lacks image or label, a label is not a whole
// number of 0 or more, or there are no samples.
std::vector<Shard> index_shards(const std::string& pattern, const std::vector<std::string>& paths,
                                std::vector<std::string>* notes);

}  // namespace skein::data
