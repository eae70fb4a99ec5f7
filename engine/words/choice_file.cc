// Lines of checksum, key and value behind a line that names format and version.
#include "engine/words/choice_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "engine/words/file.h"
#include "engine/words/hash.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFirstLine = "skein choices 1";
constexpr int64_t kMostBytes = 1 << 24;  // far more than there are shapes

// While it lives no other process is between reading a file of this folder and writing it. If the folder
// cannot be locked (some network file systems), one of two choices made at the same moment may be lost.
class LockedFolder {
 public:
  explicit LockedFolder(const fs::path& folder)
      : folder_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_ >= 0) flock(folder_, LOCK_EX);
  }
  ~LockedFolder() {
    if (folder_ >= 0) close(folder_);
  }
  LockedFolder(const LockedFolder&) = delete;

 private:
  const int folder_;
};

}  // namespace

ChoiceFile::ChoiceFile(std::string path) : path_(std::move(path)), choices_(read()) {}

std::optional<std::string> ChoiceFile::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = choices_.find(key);
  return at == choices_.end() ? std::nullopt : std::optional(at->second);
}

void ChoiceFile::keep(const std::string& key, const std::string& value) {
  CHECK(key.find_first_of("\t\n") == std::string::npos && value.find_first_of("\t\n") == std::string::npos,
        key, value);
  const std::lock_guard lock(mutex_);
  choices_[key] = made_[key] = value;
  if (path_.empty()) return;
  std::error_code none;
  fs::create_directories(fs::path(path_).parent_path(), none);
  const LockedFolder only_me(fs::path(path_).parent_path());
  for (const auto& [k, v] : read())
    if (!made_.contains(k)) choices_[k] = v;
  write();
}

std::map<std::string, std::string> ChoiceFile::read() const {
  std::map<std::string, std::string> found;
  if (path_.empty()) return found;
  std::istringstream in;
  try {
    in.str(read_file(path_, kMostBytes));
  } catch (const FileError&) { return found; }  // there is none yet, or it is not ours
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return found;
  while (std::getline(in, line)) {
    const size_t key = line.find('\t'), value = line.find('\t', key + 1);
    if (key != 16 || value == std::string::npos || fingerprint(line.substr(key + 1)) != line.substr(0, key))
      continue;
    found[line.substr(key + 1, value - key - 1)] = line.substr(value + 1);
  }
  return found;
}

void ChoiceFile::write() const noexcept {
  try {
    std::string all = kFirstLine;
    for (const auto& [key, value] : choices_) {
      const std::string pair = key + '\t' + value;
      all += '\n' + fingerprint(pair) + '\t' + pair;
    }
    write_file(path_, all + '\n', Writing::kCache);
  } catch (...) {  // the disk is full or the home is missing: the choice is made again next time
  }
}

}  // namespace skein
