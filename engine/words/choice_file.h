// Choices that take time to make, kept in a file for later runs as text by text. Failures of the file
// never fail the run.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "engine/base.h"

namespace skein {

// Thread-safe; shared by processes. A file that is missing, damaged or of another version holds nothing, a
// damaged line is skipped, and what cannot be written is kept for this process alone. Functions throw only if
// the caller breaks a promise.
class ChoiceFile {
 public:
  // Reads the file. With an empty path, choices are kept for this process alone.
  explicit ChoiceFile(std::string path);
  std::optional<std::string> find(const std::string& key) const;
  // Adds the choice or replaces it, keeping what other processes have added since. The file is replaced by a
  // rename; other writers are waited for. Keys and values must not contain tabs or line ends.
  void keep(const std::string& key, const std::string& value);

 private:
  std::map<std::string, std::string> read() const;
  void write() const noexcept;
  const std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> choices_, made_;  // made_: by this process, which win over others
};

}  // namespace skein
