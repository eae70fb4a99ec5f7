// Parses JSON from outside.
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

// A value for a message, shortened.
template <class J>
std::string brief(const J& j) {
  constexpr size_t kMost = 60;
  const std::string all = j.dump(-1, ' ', false, J::error_handler_t::replace);
  return all.size() <= kMost ? all : all.substr(0, kMost) + "...";
}

}  // namespace skein
