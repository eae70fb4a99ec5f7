// Environment variables as text and as numbers.
#pragma once
#include <optional>
#include <string>

namespace skein::apps {

// The variable's value; nothing if it is unset or empty.
std::optional<std::string> variable(const std::string& name);
// Throws BadOption, naming the variable, if it is not a whole number of 0 or more.
std::optional<int> number(const std::string& name);

}  // namespace skein::apps
