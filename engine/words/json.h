// JSON from outside and for outside.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "engine/words/nesting.h"

namespace skein {

// A discarded value if the text is not JSON, or nested too deeply for what recurses over it: copies, dump().
template <class J = nlohmann::json>
J parse_json(const std::string& text) {
  if (nested_too_deeply(text)) return J(J::value_t::discarded);
  return J::parse(text, nullptr, false);
}

// In one line, or indented by so many spaces. U+FFFD stands for what is no UTF-8, as in a file's name.
template <class J>
std::string json_text(const J& j, int indent = -1) {
  return j.dump(indent, ' ', false, J::error_handler_t::replace);
}

inline bool is_utf8(const std::string& s) try {
  return !nlohmann::json(s).dump().empty();
} catch (const nlohmann::json::type_error&) { return false; }

// A value for a message, shortened.
template <class J>
std::string brief(const J& j) {
  constexpr size_t kMost = 60;
  const std::string all = json_text(j);
  return all.size() <= kMost ? all : all.substr(0, kMost) + "...";
}

}  // namespace skein
