// Assigns cores in a fixed order, so that workers need not communicate about it.
#include "apps/launch/placement.h"

#include "data/cores.h"

namespace skein::apps {
namespace {

constexpr size_t kFewCores = 4;  // with fewer, reserving a core for one kind of work costs more than it helps

}  // namespace

Placement place_threads(const std::vector<int>& cores, int compute, int data, int slot, int slots) {
  const int64_t own = compute + data, all = own * slots, there = int64_t(cores.size());
  if (cores.size() < kFewCores || all > there || 2 * all <= there || slot < 0 || slot >= slots) return {};
  const auto first = cores.begin() + slot * own;
  return {{first, first + compute}, {first + compute, first + own}};
}

Placement place_threads(const Place& place, int compute, int data) {
  const std::vector<int> cores = data::usable_cores();
  const bool own = place.cores > 0 && int(cores.size()) == place.cores;  // no other worker uses them
  return place_threads(cores, compute, data, own ? 0 : place.local_rank, own ? 1 : place.local_world);
}

std::string list_cores(const std::vector<int>& cores) {
  std::string all;
  for (size_t i = 0; i < cores.size();) {
    size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    all += text(all.empty() ? "" : ",", cores[i]);
    if (last > i) all += text('-', cores[last]);
    i = last + 1;
  }
  return all;
}

}  // namespace skein::apps
