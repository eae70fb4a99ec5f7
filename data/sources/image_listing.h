// Which images a directory of classes holds, in an order that does not depend on the file system.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/base.h"

namespace skein::data {

struct Listed {
  std::string path;  // below the listed directory
  int32_t label = 0;
};

// What a directory holds, except hidden files and directories. Throws BadFile if it cannot be listed.
std::vector<std::filesystem::directory_entry> visible_entries(const std::filesystem::path& directory);

// The names of the class directories, sorted by their bytes; hidden ones are not classes. Throws BadFile
// unless there are at least two.
std::vector<std::string> list_classes(const std::string& directory);

// The images below each class directory, up to eight levels deep, sorted by class and path. A file is an
// image if its suffix is .jpg, .jpeg, .jpe or .png or it begins like a JPEG or PNG file; the decoder depends
// on its content alone. Hidden files and directories are skipped. Throws BadFile if a directory is not one of
// the classes, cannot be read or holds no image; a class without a directory is allowed. The result is cached
// (folder_index.h); a line about that goes to `notes`.
std::vector<Listed> list_images(const std::string& directory, const std::vector<std::string>& classes,
                                std::vector<std::string>* notes = nullptr);

// (training, testing): a tenth of each class, at least one image of two or more, is for testing. The choice
// is made by a hash of the paths, not by a run's seed, so that no run tests on what another trained on.
std::pair<std::vector<Listed>, std::vector<Listed>> split_off_tenth(const std::vector<Listed>& all);
std::vector<bool> choose_tenth(const std::vector<Listed>& all);  // true: for testing; in any order of labels

}  // namespace skein::data
