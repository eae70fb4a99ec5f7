// Assigns cores in a fixed order, so that workers need not communicate about it.
#include "apps/launch/placement.h"

#include <omp.h>

#include <algorithm>
#include <thread>

#include "apps/launch/device_choice.h"
#include "data/cores.h"

namespace skein::apps {
namespace {

constexpr size_t kFewCores = 4;  // with fewer, reserving a core for one kind of work costs more than it helps

// The first parallel loop makes the team of compute threads, which then run on this thread's cores. `free`:
// the flags leave the number of threads open.
void settle_threads(Share& s, bool free, const Place& place) {
  constexpr int kWithGpu = 2;  // threads: one queues the device's work, one carries messages
  if (free && s.device.is_cuda() && !place_threads(place, kWithGpu, s.threads - kWithGpu).data.empty())
    s.data_threads = s.threads - kWithGpu, s.threads = kWithGpu;
  omp_set_num_threads(s.threads);
  const Placement p = place_threads(place, s.threads, s.data_threads);
  data::run_on(p.compute);
  s.compute_cores = p.compute, s.data_cores = p.data;
}

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

int compute_threads(const Config& c, const Place& place) {
  if (c.threads > 0) return int(c.threads);
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  if (place.cores > 0) return std::min(place.cores, cores);
  return std::max(1, cores / place.local_world);
}

Share take_share(const Config& c, const Place& place) {
  Share s;
  s.threads = compute_threads(c, place);
  s.data_threads = c.data_threads > 0 ? int(c.data_threads) : s.threads;
  const DeviceChoice chosen = choose_device(c, place);
  s.device = chosen.device, s.device_note = chosen.note;
  settle_threads(s, c.threads == 0 && c.data_threads == 0, place);
  prepare_engine(c, s.device);
  return s;
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
