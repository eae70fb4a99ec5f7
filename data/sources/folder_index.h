// Lists the images below a directory's subdirectories once and keeps the list in an IndexCache.
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
  std::map<std::string, int64_t> others;  // files that are not images, by suffix: {".webp", 2}
};

// The content of a cache. Throws BadFile if it is damaged, or names what no scan finds.
std::vector<IndexedDirectory> parse_image_index(const std::string& bytes);

// Every directory below each of `tops`, the root's directories that are not hidden, up to eight levels deep.
// They are taken from the cache if it has the same directories and none has changed since; else they are
// scanned and cached. Adds a line about that to `notes`, if given, and one about files that are not images.
// Throws BadFile if a directory cannot be read.
std::vector<IndexedDirectory> index_images(const std::string& root, const std::vector<std::string>& tops,
                                           std::vector<std::string>* notes);

}  // namespace skein::data
