// Reading environment variables.
#include "apps/base/environment.h"

#include <cstdlib>

#include "engine/base.h"
#include "engine/words/number.h"

namespace skein::apps {

std::optional<std::string> variable(const std::string& name) {
  const char* v = std::getenv(name.c_str());
  return v && *v ? std::optional<std::string>(v) : std::nullopt;
}

std::optional<int> number(const std::string& name) {
  const std::optional<std::string> v = variable(name);
  if (!v) return {};
  const int n = number_in<int>(*v).value_or(-1);
  if (n < 0) throw BadOption(text("environment variable ", name, "=", *v, ": a whole number is needed"));
  return n;
}

}  // namespace skein::apps
