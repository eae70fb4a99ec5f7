// Numbers in texts.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace skein {

// The number that the whole text is; nothing if it is none, or none that a T can hold.
template <class T>
std::optional<T> number_in(std::string_view s) {
  T n{};
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  return error == std::errc() && end == s.data() + s.size() ? std::optional<T>(n) : std::nullopt;
}

}  // namespace skein
