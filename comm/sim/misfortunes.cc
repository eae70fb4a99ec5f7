// Kills, hangs and cuts, each a Poisson process of its own.
#include "comm/sim/misfortunes.h"

#include <cmath>

#include "engine/random.h"

namespace skein::comm::sim {
namespace {

enum Misfortune : uint32_t { kKill, kHang, kCut };

double rate_of(const Rates& r, uint32_t kind) {
  return kind == kKill ? r.kills : kind == kHang ? r.hangs : r.cuts;
}

void strike(World& world, const Rates& r, uint32_t kind, const Draw& draw) {
  const std::vector<Id> all = world.alive();
  if (all.empty()) return;
  const Id victim = all[draw.bits(1) % all.size()];
  const double length = -std::log(1 - double(draw.unit(2)));
  if (kind == kKill && all.size() > r.spared) {
    world.kill(victim, draw.bits(3) % 4 ? World::Death::kHangUp : World::Death::kSilence);
  } else if (kind == kHang) {
    world.hang(victim);
    world.at(world.now() + length * r.hang_seconds, [&world, victim] { world.wake(victim); });
  } else if (kind == kCut) {
    std::vector<Id> side;
    for (size_t i = 0; i < all.size(); ++i)
      if (draw.bits(4 + i) % 2) side.push_back(all[i]);
    world.cut(side);
    world.at(world.now() + length * r.cut_seconds, [&world, side] { world.mend(side); });
  }
}

// The next event of this kind, which brings about the one after it.
void befall(World& world, const Rates& r, double until, uint32_t kind, uint64_t count) {
  const double rate = rate_of(r, kind);
  if (rate <= 0) return;
  const Draw draw{world.seed(), Purpose::kFault, count, kind};
  const double when = world.now() - std::log(1 - double(draw.unit(0))) / rate;
  if (when > until) return;
  world.at(when, [&world, r, until, kind, count, draw] {
    strike(world, r, kind, draw);
    befall(world, r, until, kind, count + 1);
  });
}

}  // namespace

void suffer(World& world, const Rates& r, double until) {
  for (uint32_t kind : {kKill, kHang, kCut}) befall(world, r, until, kind, 0);
}

}  // namespace skein::comm::sim
