// Numbers in texts.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace skein {

// The whole text as a number; nothing if it is not a number or does not fit into a T.
template <class T>
std::optional<T> number_in(std::string_view s) {
  T n{};
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  return error == std::errc() && end == s.data() + s.size() ? std::optional<T>(n) : std::nullopt;
}

}  // namespace skein
