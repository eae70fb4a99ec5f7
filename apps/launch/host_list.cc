// Expands lists of hosts.
#include "apps/launch/host_list.h"

#include <algorithm>
#include <set>

#include "engine/base.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

// `whose` is the list and its origin, as "--hosts a,,b".
[[noreturn]] void refuse(const std::string& whose, const std::string& why) {
  throw BadOption(text(whose, ": ", why));
}
std::string name_of(const std::string& list, const std::string& variable) {
  return variable.empty() ? text("list of hosts '", list, "'")
                          : text("environment variable ", variable, '=', list);
}

int whole(const std::string& whose, const std::string& digits) {
  const int n = number_in<int>(digits).value_or(-1);
  if (n < 0) refuse(whose, text("'", digits, "' is no number"));
  return n;
}

// Splits a list at commas outside brackets.
std::vector<std::string> split(const std::string& whose, const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    depth += (c == '[') - (c == ']');
    if (depth < 0 || depth > 1) refuse(whose, "the brackets do not match");
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (depth != 0) refuse(whose, "the brackets do not match");
  for (const std::string& p : parts)
    if (p.empty()) refuse(whose, "a name is missing");
  return parts;
}

std::string padded(int64_t n, size_t width) {
  std::string s = std::to_string(n);
  return std::string(s.size() < width ? width - s.size() : 0, '0') + s;
}

// "01-03,7": 01 02 03 7
std::vector<std::string> expand_ranges(const std::string& whose, const std::string& ranges) {
  std::vector<std::string> all;
  for (const std::string& range : split(whose, ranges)) {
    const size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
    const int from = whole(whose, first), to = whole(whose, last);
    if (to < from || to - from > kMostWorkers) refuse(whose, text("'", range, "' is no range"));
    if (all.size() > size_t(kMostWorkers)) refuse(whose, "more hosts than there can be");
    for (int64_t n = from; n <= to; ++n) all.push_back(padded(n, first.size()));
  }
  return all;
}

}  // namespace

std::vector<std::string> expand_hosts(const std::string& list, const std::string& variable) {
  const std::string whose = name_of(list, variable);
  std::vector<std::string> hosts;
  for (const std::string& part : split(whose, list)) {
    std::vector<std::string> names = {""};
    for (size_t at = 0; at < part.size();) {
      const size_t open = std::min(part.find('[', at), part.size());
      for (std::string& n : names) n += part.substr(at, open - at);
      if (open == part.size()) break;
      const size_t close = part.find(']', open);
      const auto numbers = expand_ranges(whose, part.substr(open + 1, close - open - 1));
      if (names.size() * numbers.size() > size_t(kMostWorkers)) refuse(whose, "more hosts than there can be");
      std::vector<std::string> longer;
      for (const std::string& n : names)
        for (const std::string& digits : numbers) longer.push_back(n + digits);
      names = std::move(longer);
      at = close + 1;
    }
    if (hosts.size() + names.size() > size_t(kMostWorkers)) refuse(whose, "more hosts than there can be");
    hosts.insert(hosts.end(), names.begin(), names.end());
  }
  return hosts;
}

std::vector<int> expand_counts(const std::string& list, const std::string& variable) {
  const std::string whose = name_of(list, variable);
  std::vector<int> all;
  for (const std::string& part : split(whose, list)) {
    const size_t open = part.find("(x");
    int times = 1;
    if (open != std::string::npos) {
      if (part.back() != ')') refuse(whose, text("'", part, "' is no count"));
      times = whole(whose, part.substr(open + 2, part.size() - open - 3));
    }
    if (all.size() + size_t(times) > size_t(kMostWorkers)) refuse(whose, "more hosts than there can be");
    all.insert(all.end(), size_t(times), whole(whose, part.substr(0, open)));
  }
  return all;
}

std::vector<HostShare> parse_hosts(const std::string& list, int workers) {
  const std::string whose = "--hosts " + list;
  std::vector<HostShare> hosts;
  std::set<std::string> names;
  bool numbers = false;
  int sum = 0;
  for (const std::string& part : split(whose, list)) {
    const size_t colon = part.find(':');
    HostShare h{part.substr(0, colon), 1};
    if (colon != std::string::npos) h.workers = whole(whose, part.substr(colon + 1)), numbers = true;
    if (h.name.empty() || h.name[0] == '-') refuse(whose, text("'", h.name, "' is not the name of a host"));
    if (h.workers < 1) refuse(whose, text("at least 1 worker is needed on ", h.name));
    if (h.workers > kMostWorkers - sum) refuse(whose, "more workers than there can be");
    if (!names.insert(h.name).second)
      refuse(whose, text(h.name, " is there twice; ", h.name, ":2 starts two workers on it"));
    sum += h.workers;
    hosts.push_back(h);
  }
  if (workers == 0 || workers == sum) return hosts;
  const int n = int(hosts.size());
  if (numbers) refuse(whose, text("these are ", sum, " workers, --workers says ", workers));
  if (workers % n != 0)
    refuse(whose, text(workers, " workers do not spread evenly over ", n,
                       " hosts; say how many on each, as in ", hosts[0].name, ":2"));
  for (HostShare& h : hosts) h.workers = workers / n;
  return hosts;
}

}  // namespace skein::apps
