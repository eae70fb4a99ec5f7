// Environment variables as text and as numbers.
#pragma once
#include <optional>
#include <string>

namespace skein::apps {

// Of an unset or empty one: nothing.
std::optional<std::string> variable(const std::string& name);
// Throws BadOption, naming it, if it is no whole number from 0.
std::optional<int> number(const std::string& name);

}  // namespace skein::apps
