// Section: a table of a TOML file that is read key by key, and in which everything that was not asked for
// is a mistake.
#pragma once
#include <toml++/toml.h>

#include <set>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::apps {

// Refusals are BadOption, which begin with file and line and name the key. Lives as long as its TomlFile.
class Section {
 public:
  Section(const toml::table& t, std::string path, std::string name)
      : table_(&t), path_(std::move(path)), name_(std::move(name)) {}

  static constexpr double kMost = 1e12;
  double number(const std::string& key, double otherwise, double low = 0, double high = kMost);
  int64_t count(const std::string& key, int64_t otherwise, int64_t low, int64_t high);
  std::string word(const std::string& key, const std::string& otherwise = "");
  // The place of the word among those that are allowed.
  size_t one_of(const std::string& key, const std::vector<std::string>& names, const std::string& otherwise);
  size_t index(const std::string& key, const std::string& said, const std::vector<std::string>& names) const;
  // The tables of this name: [key], or several [[key]].
  std::vector<Section> tables(const std::string& key, bool several);
  bool has(const std::string& key) const;
  bool has_list(const std::string& key) const;
  void finish() const;  // refuses keys that were never read
  // Refuses a key that means nothing without another one.
  void needs(const std::string& key, const std::string& other) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

 private:
  const toml::node* find(const std::string& key);
  const toml::table* table_;
  std::string path_, name_;  // name_: empty at the top
  std::set<std::string> known_;
};

class TomlFile {
 public:
  // `path` names it in messages. Throws BadOption, with file and line, if it is no TOML.
  TomlFile(const std::string& toml, std::string path);
  Section top() const { return {table_, path_, ""}; }

 private:
  const std::string path_;
  toml::table table_;
};

}  // namespace skein::apps
