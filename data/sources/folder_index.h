// The images below a directory's subdirectories, looked up once and kept in an IndexCache.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/sources/index_cache.h"

namespace skein::data {

struct IndexedDirectory {
  std::string path;  // below the root: "n01440764", "dog/brown"
  Times times;
  std::vector<std::string> images;        // names of files in it, in no order
  std::map<std::string, int64_t> others;  // files that are no images, by suffix: {".webp", 2}
};

// Every directory below each of `tops`, the directories of the root that are not hidden, at any depth to
// eight. Taken from the cache if these are the directories it knows and none has changed since; else scanned,
// and kept. Adds a line about that to `notes`, if given, and one about files that are no images, if there are
// any. BadFile if a directory cannot be read.
std::vector<IndexedDirectory> index_images(const std::string& root, const std::vector<std::string>& tops,
                                           std::vector<std::string>* notes);

}  // namespace skein::data
