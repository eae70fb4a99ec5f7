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

// What a directory holds, hidden files and directories apart. BadFile if it cannot be listed.
std::vector<std::filesystem::directory_entry> visible_entries(const std::filesystem::path& directory);

// The names of the class directories, sorted by their bytes; hidden ones are not classes. BadFile unless
// there are two at least.
std::vector<std::string> list_classes(const std::string& directory);

// The images below each class directory, at any depth to eight, sorted by class and path. A file counts as
// one if it is called .jpg, .jpeg, .jpe or .png or begins like a JPEG or PNG file; how it is decoded depends
// on its content alone. Hidden files and directories are passed over. BadFile if a directory is not one of
// the classes, cannot be read or holds no image; a class without a directory is allowed. What was found is
// kept (folder_index.h); a line about that goes to `notes`.
std::vector<Listed> list_images(const std::string& directory, const std::vector<std::string>& classes,
                                std::vector<std::string>* notes = nullptr);

// (training, testing): a tenth of each class, at least one of two or more, is for testing, chosen by a hash
// of the paths: the same files whatever a run's seed is, so that no run tests on what another trained on.
std::pair<std::vector<Listed>, std::vector<Listed>> split_off_tenth(const std::vector<Listed>& all);
std::vector<bool> choose_tenth(const std::vector<Listed>& all);  // true: for testing; in any order of labels

}  // namespace skein::data
