// How deeply JSON and TOML are nested, found before anything recurses over them.
#pragma once
#include <string_view>

namespace skein {

// More than files of ours or of our users have; the stack holds a thousand times as many.
inline constexpr int kMostLevels = 64;

// Whether brackets of this JSON or TOML are nested deeper than kMostLevels, or a dotted key of TOML has more
// parts. What is in strings and comments does not count. Text that is neither JSON nor TOML has any answer.
bool nested_too_deeply(std::string_view text);

}  // namespace skein
