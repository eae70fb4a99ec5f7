// Every question marks its key as known.
#include "apps/config/section.h"

#include <cmath>

#include "engine/words/find_row.h"
#include "engine/words/nesting.h"

namespace skein::apps {
namespace {

std::string shown(const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  if (names.size() <= kShown) return joined(names);
  return text(joined({names.begin(), names.begin() + kShown}), " and ", names.size() - kShown, " more");
}

}  // namespace

const toml::node* Section::find(const std::string& key) {
  known_.insert(key);
  return table_->get(key);
}

bool Section::has(const std::string& key) const { return table_->contains(key); }

bool Section::has_list(const std::string& key) const {
  const toml::node* n = table_->get(key);
  return n && n->is_array();
}

double Section::number(const std::string& key, double otherwise, double low, double high) {
  const toml::node* n = find(key);
  if (!n) return otherwise;
  if (!n->is_number()) refuse(key, "a number is wanted");
  const double v = n->value<double>().value_or(NAN);
  if (v >= low && v <= high) return v;
  refuse(key, text(v, " is out of range; allowed: ",
                   high < kMost || v > high ? text("from ", low, " to ", high) : text(low, " or more")));
}

int64_t Section::count(const std::string& key, int64_t otherwise, int64_t low, int64_t high) {
  const toml::node* n = find(key);
  if (!n) return otherwise;
  const auto v = n->value_exact<int64_t>();
  if (!v) refuse(key, "a whole number is wanted");
  if (*v >= low && *v <= high) return *v;
  refuse(key, text(*v, " is out of range; allowed: from ", low, " to ", high));
}

std::string Section::word(const std::string& key, const std::string& otherwise) {
  const toml::node* n = find(key);
  if (!n) return otherwise;
  const auto v = n->value_exact<std::string>();
  if (!v || v->empty()) refuse(key, "text in quotes is wanted");
  return *v;
}

size_t Section::one_of(const std::string& key, const std::vector<std::string>& names,
                       const std::string& otherwise) {
  return index(key, word(key, otherwise), names);
}

size_t Section::index(const std::string& key, const std::string& said,
                      const std::vector<std::string>& names) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == said) return i;
  if (names.empty()) refuse(key, text("there is no '", said, "'"));
  refuse(key, text("there is no '", said, "'; there are ", shown(names), did_you_mean(said, names)));
}

std::vector<Section> Section::tables(const std::string& key, bool several) {
  const toml::node* n = find(key);
  if (!n) return {};
  const std::string name = several ? text("[[", key, "]]") : text("[", key, "]");
  std::vector<const toml::node*> nodes;
  if (const toml::array* list = n->as_array(); several && list)
    for (const toml::node& one : *list) nodes.push_back(&one);
  else
    nodes.push_back(n);
  std::vector<Section> all;
  for (const toml::node* one : nodes) {
    const toml::table* t = one->as_table();
    if (!t || (several && one == n)) refuse(key, text("is to be written as ", name));
    all.emplace_back(*t, path_, name);
  }
  return all;
}

void Section::finish() const {
  for (const auto& [key, node] : *table_)
    if (const std::string name(key.str()); !known_.count(name))
      throw BadOption(text(path_, ":", key.source().begin.line, ": unknown key '", name, "'",
                           name_.empty() ? "" : " in " + name_,
                           did_you_mean(name, {known_.begin(), known_.end()})));
}

void Section::needs(const std::string& key, const std::string& other) const {
  if (has(key) && !has(other)) refuse(key, "has no effect without " + other);
}

void Section::refuse(const std::string& key, const std::string& why) const {
  const toml::node* n = table_->get(key);
  const auto line = n ? n->source().begin.line : table_->source().begin.line;
  throw BadOption(text(path_, ":", std::max<decltype(line)>(line, 1), ": ", name_.empty() ? "" : name_ + " ",
                       key, ": ", why));
}

TomlFile::TomlFile(const std::string& toml, std::string path) : path_(std::move(path)) {
  if (nested_too_deeply(toml)) throw BadOption(text(path_, ": nested deeper than ", kMostLevels, " levels"));
  try {
    table_ = toml::parse(toml, path_);
  } catch (const toml::parse_error& e) {
    throw BadOption(text(path_, ":", e.source().begin.line, ": not valid TOML: ", e.description()));
  }
}

}  // namespace skein::apps
