// Reads and writes predictions.
#include "apps/config/predicted.h"

#include <fmt/format.h>

#include "engine/base.h"
#include "engine/words/number.h"
#include "engine/words/split.h"

namespace skein::apps {

std::optional<Predicted> Predicted::parse(const std::string& given, const std::string& place) {
  if (given.empty()) return {};
  const auto refuse = [&](const std::string& one) {
    throw BadOption(text(place, ": '", one,
                         "' is no prediction; --plan prints it with the command to start, as in ",
                         "images/s=512,hidden=0.93,bytes/step=4.2e6"));
  };
  Predicted p;
  for (const std::string& one : split(given, ',')) {
    const size_t sign = one.find('=');
    if (sign == std::string::npos) refuse(one);
    const std::string what = one.substr(0, sign);
    const auto value = number_in<double>(one.substr(sign + 1));
    if (!value || !(*value >= 0 && *value < 1e300)) refuse(one);
    if (what == "images/s" && *value > 0)
      p.images_per_second = *value;
    else if (what == "hidden" && *value <= 1)
      p.hidden_share = *value;
    else if (what == "bytes/step")
      p.bytes_per_step = *value;
    else
      refuse(one);
  }
  if (p.images_per_second == 0) refuse(given);
  return p;
}

std::string Predicted::words() const {
  std::string s = fmt::format("images/s={:.6g}", images_per_second);
  if (hidden_share) s += fmt::format(",hidden={:.6g}", *hidden_share);
  if (bytes_per_step) s += fmt::format(",bytes/step={:.6g}", *bytes_per_step);
  return s;
}

}  // namespace skein::apps
