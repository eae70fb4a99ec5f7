// Reads and writes shares of a batch.
#include "apps/config/batch_size.h"

#include <algorithm>
#include <numeric>

#include "engine/base.h"
#include "engine/words/number.h"
#include "engine/words/split.h"

namespace skein::apps {

BatchSize::BatchSize(std::vector<int64_t> s) : shares(std::move(s)) {
  CHECK(!shares.empty());
  most = *std::max_element(shares.begin(), shares.end());
}

BatchSize BatchSize::parse(const std::string& given, const std::string& place) {
  if (given == "auto") {
    BatchSize b(64);
    b.automatic = true;
    return b;
  }
  std::vector<int64_t> each;
  for (const std::string& one : split(given, ',')) {
    const auto n = number_in<int64_t>(one);
    if (!n)
      throw BadOption(text(place, ": '", one, "' is not a whole number; allowed: one number, one for each ",
                           "worker as in 64,64,32, or auto"));
    constexpr int64_t kMost = int64_t(1) << 40;
    if (*n < 1 || *n > kMost) throw BadOption(text(place, ": ", one, " is out of range; allowed: 1 or more"));
    each.push_back(*n);
  }
  return each.size() == 1 ? BatchSize(each[0]) : BatchSize(std::move(each));
}

std::string BatchSize::words() const {
  if (automatic) return "auto";
  if (shares.empty()) return std::to_string(most);
  std::string s;
  for (const int64_t n : shares) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s;
}

}  // namespace skein::apps
