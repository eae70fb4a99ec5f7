// States of workers, as fields of every kind, and the pools that they make from memory.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "apps/checkpoint/pool.h"
#include "engine/random.h"
#include "optim/snapshot.h"
#include "tests/support/world.h"

namespace skein::apps {

using Fields = optim::Snapshot::Fields;

inline Tensor normal(int64_t n, uint64_t which) {
  const Tensor t({n});
  fill_normal(t, {.seed = 3, .purpose = Purpose::kTest, .step = which}, 0, 1);
  return t;
}

// Fields of every kind, some alike on all workers, some not, some with few of them.
inline Fields state_of(int worker) {
  const uint64_t w = uint64_t(worker);
  Fields f;
  f["x"] = normal(1001, 7);
  std::get<Tensor>(f["x"]).data<float>()[5] = -0.f;
  f["rule.v"] = normal(1001, 10 + w);
  f["buffers"] = worker < 2 ? normal(3, 30) : normal(3, 31);
  f["nothing"] = Tensor({0});
  f["absent"] = Tensor();
  f["loss_scale.scale"] = Tensor::of<float>({2}, {float(8 >> worker), float(worker)});
  f["permutation"] = Tensor::of<int32_t>({3}, {1, 2, 3 + worker});
  f["marks"] = Tensor::of<uint8_t>({2, 2}, {1, 2, 3, 4});
  f["words"] = std::string("worker ") + std::string(size_t(worker), '\0');
  f["same words"] = std::string();
  if (worker == 0) f["strategy.center.theta"] = normal(1001, 50);
  if (worker == 0) f["strategy.center.version"] = int64_t(1) << 60;
  if (worker > 0) f["strategy.late"] = normal(1, 60 + w);
  f["meters.total.images"] = 12.5 * (worker + 1);
  f["transfers.bytes"] = 1e300;
  f["unreadable"] = int64_t(worker);
  f["strategy.tau"] = int64_t(4);
  f["eta"] = worker == 1 ? -INFINITY : 0.1;
  return f;
}

inline std::vector<Fields> states(int workers) {
  std::vector<Fields> all;
  for (int w = 0; w < workers; ++w) all.push_back(state_of(w));
  return all;
}

inline Walk walk_of(Fields& fields) {
  return [&fields](Archive& a) {
    for (auto& [name, field] : fields)
      std::visit(
          [&, &name = name](auto& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, Tensor>) {
              if (v) a(name, v);
            } else if constexpr (!std::is_same_v<T, std::monostate>) {
              a(name, v);
            }
          },
          field);
  };
}

// The pools of a world in which the ranks named have these states, in this order, and the others none.
inline std::vector<Pool> from_memory(int world, const std::vector<comm::Rank>& ranks,
                                     const std::vector<Fields>& states) {
  std::vector<Pool> pools(static_cast<size_t>(world));
  comm::in_local_world(world, [&](comm::Communicator& c) {
    const auto at = std::find(ranks.begin(), ranks.end(), c.rank());
    Pool& mine = pools[size_t(c.rank())];
    if (at != ranks.end()) mine.add(states[size_t(at - ranks.begin())]);
    mine.unite(c, at != ranks.end());
  });
  return pools;
}

}  // namespace skein::apps
