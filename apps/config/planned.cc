// Reads and writes what was planned.
#include "apps/config/planned.h"

#include <fmt/format.h>

#include <vector>

#include "apps/config/config.h"
#include "engine/words/number.h"
#include "engine/words/split.h"

namespace skein::apps {

Planned Planned::parse(const std::string& given, const std::string& place) {
  std::vector<double> numbers;
  for (const std::string& one : split(given, ':')) {
    const auto n = number_in<double>(one);
    if (!n || !(*n >= 0 && *n < 1e18)) break;
    numbers.push_back(*n);
  }
  const size_t parts = split(given, ':').size();
  const bool good = numbers.size() == parts && (parts == 2 || parts == 3) && numbers[0] > 0 &&
                    (parts == 2 || numbers[2] <= 1);
  if (!good)
    throw BadOption(text(place, ": '", given, "' is not what --plan prints: images a second, bytes that a ",
                         "worker sends in a step, and the share of transfers that is hidden, as in ",
                         "512:1083000:0.62"));
  Planned p{.images_per_second = numbers[0], .bytes_per_step = numbers[1]};
  if (parts == 3) p.hidden_share = numbers[2];
  return p;
}

std::string Planned::words() const {
  return fmt::format("{:.{}f}:{:.0f}", images_per_second, images_per_second < 100 ? 2 : 0, bytes_per_step) +
         (hidden_share ? fmt::format(":{:.2f}", *hidden_share) : "");
}

std::optional<Planned> planned_of(const Config& c) {
  if (c.planned.empty()) return {};
  return Planned::parse(c.planned, c.origin("planned").place);
}

}  // namespace skein::apps
