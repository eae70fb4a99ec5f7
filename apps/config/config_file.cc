// Configuration as TOML: reading it key by key with file and line, and writing it back.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/config/config.h"
#include "apps/config/known_words.h"
#include "engine/words/file.h"
#include "engine/words/find_row.h"
#include "engine/words/nesting.h"

namespace skein::apps {
namespace {

// A TOML value as text for assign(), if its type fits the flag.
std::string text_of(const toml::node& node, const Flag& flag, const std::string& place) {
  const auto wrong = [&](const char* wanted) {
    std::ostringstream type;
    type << node.type();
    return BadOption(text(place, ": ", wanted, " is wanted, not a TOML ", type.str()));
  };
  switch (flag.kind) {
    case Flag::kWord:
    case Flag::kBatch:
      if (const auto* s = node.as_string()) return s->get();
      if (const auto* n = node.as_integer()) return std::to_string(n->get());
      throw wrong("text in quotes");
    case Flag::kCount:
      if (const auto* n = node.as_integer()) return std::to_string(n->get());
      throw wrong("a whole number");
    case Flag::kReal:
      if (const auto* n = node.as_integer()) return std::to_string(n->get());
      if (const auto* r = node.as_floating_point()) return fmt::format("{}", r->get());
      throw wrong("a number");
    case Flag::kSwitch:
      if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
      throw wrong("true or false");
  }
  return {};
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", int(c));
    else
      out += c;
  }
  return out + '"';
}

bool is_text(const Flag& flag, const std::string& value) {
  const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return flag.kind == Flag::kWord || (flag.kind == Flag::kBatch && !is_number);
}

// If this line is KEY = TEXT without quotes, which is the usual reason why a file is not TOML, says
// how to write it.
std::string unquoted(const std::string& toml, size_t number, const Flags& table) {
  std::istringstream lines(toml);
  std::string line;
  for (size_t n = 0; n < number; ++n) std::getline(lines, line);
  std::istringstream words(line);
  std::string key, equals, value;
  words >> key >> equals >> value;
  const Flag* flag = find_flag(table, key);
  if (!flag || !is_text(*flag, value) || equals != "=" || value.empty() || value[0] == '"') return "";
  return text("; text needs quotes: ", key, " = ", quoted(value));
}

constexpr int64_t kMostBytes = 1 << 20;  // of a configuration

std::string literal(const Flag& flag, const std::string& value) {
  return is_text(flag, value) ? quoted(value) : value;
}

}  // namespace

void read_toml(Config& config, const std::string& path, Source source, const Flags& table,
               const std::vector<std::string>& skip) {
  parse_toml(config, read_file(path, kMostBytes), path, source, table, skip);
}

void parse_toml(Config& config, const std::string& toml, const std::string& path, Source source,
                const Flags& table, const std::vector<std::string>& skip) {
  if (nested_too_deeply(toml))
    throw BadOption(text(path, ": nested deeper than ", kMostLevels, " levels; write flags as KEY = VALUE"));
  toml::table file;
  try {
    file = toml::parse(toml, path);
  } catch (const toml::parse_error& e) {
    const auto line = e.source().begin.line;
    throw BadOption(
        text(path, ":", line, ": not valid TOML: ", e.description(), unquoted(toml, line, table)));
  }
  for (const auto& [key, node] : file) {
    const std::string name(key.str());
    const std::string at = text(path, ":", key.source().begin.line, ": ");
    const Flag* flag = find_flag(table, name);
    if (!flag) {
      if (node.is_table())
        throw BadOption(
            text(at, "there are no sections, but one is called [", name, "]; write flags as KEY = VALUE"));
      const std::string answer = answer_to_flag(name);
      throw BadOption(text(at, "unknown key '", name, "'",
                           answer.empty() ? did_you_mean(name, names_of(table)) : ": " + answer));
    }
    if (std::find(skip.begin(), skip.end(), flag->name) != skip.end()) continue;
    if (name != flag->name && file.contains(flag->name))
      throw BadOption(text(at, "'", name, "' and '", flag->name, "' are the same flag; give it once"));
    assign(config, *flag, text_of(node, *flag, at + name), {source, at + name});
  }
}

std::string with_place(const Config& c, const std::string& message) {
  if (!message.starts_with("--")) return message;
  const Origin from = c.origin(message.substr(2, message.find_first_of(" :") - 2));
  return from.source == Source::kFile ? from.place + ": " + message : message;
}

namespace {

// Flags that neither the algorithm nor the optimizer reads are not shown.
bool shows(const Config& c, const Flag& f, const std::string& value) {
  if (f.of_algorithm() && value.empty()) return false;
  return f.optimizers.empty() ||
         std::find(f.optimizers.begin(), f.optimizers.end(), c.optimizer) != f.optimizers.end();
}

}  // namespace

std::string to_toml(const Config& config, const Flags& table) {
  std::string out = "# The configuration of train_imagenet; read it with --config.\n";
  std::string group;
  for (const Flag& flag : table) {
    const std::string value = value_of(config, flag);
    if (!shows(config, flag, value)) continue;
    if (flag.group != group) out += fmt::format("\n# {}\n", flag.group);
    group = flag.group;
    const std::string line = fmt::format("{} = {}", flag.name, literal(flag, value));
    out += fmt::format("{:<36}  # {}\n", line, flag.help);
  }
  return out;
}

Json to_json(const Config& config, const Flags& table) {
  Json out = Json::object();
  for (const Flag& flag : table) {
    const std::string value = value_of(config, flag);
    if (!shows(config, flag, value)) continue;
    if (is_text(flag, value))
      out[flag.name] = value;
    else
      out[flag.name] = Json::parse(value);
  }
  return out;
}

}  // namespace skein::apps
