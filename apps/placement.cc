// Dealing cores out in one order, so that workers need not talk about it.
#include "apps/placement.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "data/cores.h"

namespace skein::apps {
namespace {

constexpr size_t kFewCores = 4;  // below that a core kept free of a kind of work is missed more than it helps

int slot_of(const Place& place) {
  if (place.local_world == place.world) return place.rank;
  const char* told = std::getenv("LOCAL_RANK");
  if (!told) return -1;
  int slot = -1;
  std::from_chars(told, told + std::strlen(told), slot);
  return slot;
}

}  // namespace

Placement place_threads(const std::vector<int>& cores, int compute, int data, int slot, int slots) {
  const int64_t own = compute + data, all = own * slots, there = int64_t(cores.size());
  if (cores.size() < kFewCores || all > there || 2 * all <= there || slot < 0 || slot >= slots) return {};
  const auto first = cores.begin() + slot * own;
  return {{first, first + compute}, {first + compute, first + own}};
}

Placement place_threads(const Place& place, int compute, int data) {
  return place_threads(data::usable_cores(), compute, data, slot_of(place), place.local_world);
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
