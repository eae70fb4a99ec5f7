// Reading environment variables.
#include "apps/environment.h"

#include <charconv>
#include <cstdlib>

#include "engine/base.h"

namespace skein::apps {

std::optional<std::string> variable(const std::string& name) {
  const char* v = std::getenv(name.c_str());
  return v && *v ? std::optional<std::string>(v) : std::nullopt;
}

std::optional<int> number(const std::string& name) {
  const std::optional<std::string> v = variable(name);
  if (!v) return {};
  int n = 0;
  const auto [end, error] = std::from_chars(v->data(), v->data() + v->size(), n);
  if (error != std::errc() || end != v->data() + v->size() || n < 0)
    throw BadOption(text("environment variable ", name, "=", *v, ": a whole number is needed"));
  return n;
}

}  // namespace skein::apps
