// Matches the names of directories with those of splits.
#include "data/sources/split_directories.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "data/sources/image_listing.h"

namespace skein::data {
namespace {

constexpr const char* kTraining[] = {"train", "training"};
constexpr const char* kTesting[] = {"val", "valid", "validation", "test", "testing"};

std::string lower(std::string s) {
  for (char& c : s) c = char(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

std::string list_of(std::span<const char* const> names) {
  std::string all;
  for (size_t i = 0; i < names.size(); ++i)
    all += text(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i], '/');
  return all;
}

// The directories in `there` that are called `name`.
std::vector<std::string> called(const std::string& name, const std::vector<std::string>& there) {
  std::vector<std::string> found;
  std::copy_if(there.begin(), there.end(), std::back_inserter(found),
               [&](const std::string& d) { return lower(d) == name; });
  return found;
}

std::string only(const std::string& directory, const std::vector<std::string>& found, const char* purpose) {
  if (found.size() > 1)
    throw BadFile(text(directory, ": holds both ", found[0], "/ and ", found[1], "/; which of them is to ",
                       purpose, " on? Rename or remove the other"));
  return found.empty() ? "" : found[0];
}

}  // namespace

SplitDirectories find_splits(const std::string& directory) {
  std::vector<std::string> there;
  for (const std::filesystem::directory_entry& e : visible_entries(directory)) {
    std::error_code code;
    if (e.is_directory(code)) there.push_back(e.path().filename().string());
  }
  std::sort(there.begin(), there.end());
  SplitDirectories s;
  std::vector<std::string> training;
  for (const char* name : kTraining)
    for (const std::string& d : called(name, there)) training.push_back(d);
  s.train = only(directory, training, "train");
  for (const char* name : kTesting)
    if (s.test.empty()) s.test = only(directory, called(name, there), "test");
  for (const std::string& d : there)
    if (d != s.train && d != s.test) s.unused.push_back(d);
  return s;
}

std::string missing_split(const SplitDirectories& s) {
  return s.train.empty() ? text(s.test, "/ but no ", list_of(kTraining))
                         : text(s.train, "/ but no ", list_of(kTesting));
}

}  // namespace skein::data
