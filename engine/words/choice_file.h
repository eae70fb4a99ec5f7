// Choices that cost time to make, kept in a file for later runs: text to text. Never in the way
// of what it helps.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "engine/base.h"

namespace skein {

// Thread-safe; shared by processes. A file that is missing, damaged or of another version holds nothing, a
// damaged line is passed over, and what cannot be written is kept for this process alone: no function throws
// but for a broken promise.
class ChoiceFile {
 public:
  // Reads the file. An empty path: for this process alone.
  explicit ChoiceFile(std::string path);
  std::optional<std::string> find(const std::string& key) const;
  // Adds it, or replaces what was there, together with what others have added since, aside and renamed; waits
  // for others that write. No tabs or line ends in keys and values.
  void keep(const std::string& key, const std::string& value);
  size_t size() const;

 private:
  std::map<std::string, std::string> read() const;
  void write() const noexcept;
  const std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> choices_;
};

}  // namespace skein
