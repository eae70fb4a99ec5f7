// State united from memory: the same as from files, and what workers make of it.
#include "apps/checkpoint/pool.h"

#include <gtest/gtest.h>

#include <cmath>

#include "apps/checkpoint/reshare.h"
#include "tests/apps/checkpoint/pool_states.h"
#include "tests/support/checkpoints.h"
#include "tests/support/snapshots.h"

namespace skein::apps {
namespace {

using comm::Communicator;
using comm::Rank;

Pool from_files(const std::vector<Fields>& states) {
  const ScratchDir dir;
  Checkpoints files(dir.path());
  files.begin(1);
  for (size_t r = 0; r < states.size(); ++r) {
    Fields f = states[r];
    files.write(1, int(r), walk_of(f));
  }
  const std::string checkpoint = files.commit(1, identity(int(states.size())));
  return Pool(checkpoint, read_manifest(checkpoint));
}

void expect_same(const Pool& a, const Pool& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, t] : a.tensors()) {
    const Tensor& u = b.tensors().at(name);
    EXPECT_EQ(t.shape(), u.shape()) << name;
    EXPECT_EQ(t.dtype(), u.dtype()) << name;
    EXPECT_TRUE(optim::same_bits(t, u)) << name;
  }
  EXPECT_EQ(a.wholes(), b.wholes());
  EXPECT_EQ(a.reals(), b.reals());
}

TEST(Pool, IsTheSameFromMemoryAndFromFilesOnAllWorkers) {
  const std::vector<std::vector<Rank>> where[] = {{{0}, {1}, {2}}, {{0, 1}, {2, 0}}, {{0, 1, 2}, {1, 2, 4}}};
  for (int workers = 1; workers <= 3; ++workers) {
    const Pool files = from_files(states(workers));
    EXPECT_EQ(files.tensors().size(), workers == 1 ? 10u : 11u);
    for (std::vector<Rank> ranks : where[workers - 1]) {
      std::sort(ranks.begin(), ranks.end());
      for (const int world : {ranks.back() + 1, 5})
        for (const Pool& p : from_memory(world, ranks, states(workers))) expect_same(files, p);
    }
  }
}

TEST(Pool, KeepsTheBitsThatAllHave) {
  for (const Pool& p : {from_files(states(3)), from_memory(4, {0, 1, 3}, states(3))[2]}) {
    EXPECT_TRUE(optim::same_bits(p.tensors().at("x"), std::get<Tensor>(state_of(0)["x"])));
    EXPECT_TRUE(std::signbit(p.tensors().at("x").data<float>()[5]));
  }
}

TEST(Pool, TakesTheMeanTheLeastOrTheLowestWorkers) {
  const Pool p = from_memory(3, {0, 1, 2}, states(3))[1];
  const float* v = p.tensors().at("rule.v").data<float>();
  for (int i : {0, 500, 1000}) {
    double sum = 0;
    for (int w = 0; w < 3; ++w) sum += double(std::get<Tensor>(state_of(w)["rule.v"]).data<float>()[i]);
    EXPECT_EQ(v[i], float(sum / 3));
  }
  const float* scale = p.tensors().at("loss_scale.scale").data<float>();
  EXPECT_EQ(scale[0], 2);
  EXPECT_EQ(scale[1], 0);
  EXPECT_EQ(p.tensors().at("permutation").data<int32_t>()[2], 3);
  EXPECT_EQ(p.tensors().at("words").size(), 7);
}

// Columns of the mixing matrix sum to 1, so all X and all w are somewhere.
TEST(Pool, PushSumsMassIsConserved) {
  for (const bool alike : {false, true})
    for (const int flights : {0, 3}) {
      std::vector<Fields> three(3);
      std::vector<double> sum(100), w(1);
      for (int r = 0; r < 3; ++r) {
        Fields& f = three[size_t(r)];
        const auto put = [&](const std::string& x, const std::string& weight, uint64_t which, double of) {
          f[x] = normal(100, alike ? 0 : which);
          f[weight] = of;
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += std::get<Tensor>(f[x]).data<float>()[i];
          w[0] += of;
        };
        put("strategy.x", "strategy.w", uint64_t(r), 0.25 + 0.5 * r);
        for (int i = 0; i < flights * r / 2; ++i)
          put(text("strategy.flight", i, ".x"), text("strategy.flight", i, ".weight"), uint64_t(10 * r + i),
              0.5);
      }
      const Pool files = from_files(three);
      for (const Pool& p : from_memory(4, {0, 2, 3}, three)) {
        const Tensor& x = p.tensors().at("strategy.x");
        for (int64_t i = 0; i < 100; ++i) {
          EXPECT_NEAR(x.data<float>()[i], sum[size_t(i)] / w[0], 2e-6);
          EXPECT_NEAR(x.data<float>()[i], files.tensors().at("strategy.x").data<float>()[i], 1e-6);
        }
        EXPECT_FALSE(p.tensors().contains("strategy.flight0.x"));
        if (flights == 0) expect_same(files, p);
      }
    }
}

// What a worker of some rank becomes.
Fields loaded(const Pool& p, const std::string& algorithm, Rank rank, Differing differing, Fields like) {
  for (auto& [name, field] : like)
    if (Tensor* t = std::get_if<Tensor>(&field); t && *t) *t = Tensor::zeros(t->shape(), t->dtype());
  load_pooled(p, algorithm, rank, differing, walk_of(like));
  return like;
}
bool same(const Fields& a, const Fields& b, const std::string& field) {
  return std::visit(
      [&](const auto& v) {
        const auto* w = std::get_if<std::decay_t<decltype(v)>>(&b.at(field));
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return true;
        else
          return w && optim::same_bits(v, *w);
      },
      a.at(field));
}

TEST(Pool, AllBeginAlikeOrEachWithItsOwn) {
  const std::vector<Pool> pools = from_memory(4, {0, 1, 3}, states(3));
  std::vector<Fields> equal, own;
  for (Rank r = 0; r < 4; ++r) {
    equal.push_back(loaded(pools[size_t(r)], "local-sgd", r, Differing::kAllEqual, state_of(0)));
    own.push_back(loaded(pools[size_t(r)], "local-sgd", r, Differing::kKeepOwn, state_of(r == 3 ? 2 : r)));
  }
  for (const char* field : {"x", "rule.v", "buffers", "words", "permutation", "strategy.tau", "eta"}) {
    for (const Fields& f : equal) EXPECT_TRUE(same(f, equal[0], field)) << field;
    EXPECT_TRUE(same(own[0], state_of(0), field)) << field;
    EXPECT_TRUE(same(own[1], state_of(1), field)) << field;
    EXPECT_TRUE(same(own[3], state_of(2), field)) << field;
    EXPECT_TRUE(same(own[2], equal[0], field)) << field;
  }
  for (Rank r = 0; r < 4; ++r) {
    EXPECT_TRUE(same(own[size_t(r)], equal[0], "loss_scale.scale"));
    EXPECT_EQ(std::get<double>(equal[size_t(r)]["meters.total.images"]), r == 0 ? 75 : 0);
    EXPECT_EQ(std::get<int64_t>(equal[size_t(r)]["unreadable"]), r == 0 ? 3 : 0);
    EXPECT_EQ(std::get<double>(own[size_t(r)]["meters.total.images"]),
              r == 2 ? 0 : 12.5 * (r == 3 ? 3 : r + 1));
  }
}

TEST(Pool, PushSumsSurvivorsGetTheSumWhateverTheyKeep) {
  std::vector<Fields> two(2);
  for (int r = 0; r < 2; ++r)
    two[size_t(r)] = {{"x", normal(4, uint64_t(r))},
                      {"rule.v", normal(4, 5 + uint64_t(r))},
                      {"strategy.x", normal(4, 9 + uint64_t(r))},
                      {"strategy.w", 0.5 + r}};
  const std::vector<Pool> pools = from_memory(3, {0, 2}, two);
  const Fields first = loaded(pools[0], "sgp", 0, Differing::kKeepOwn, two[0]);
  for (Rank r : {1, 2}) {
    const Fields f = loaded(pools[size_t(r)], "sgp", r, Differing::kKeepOwn, two[0]);
    for (const char* field : {"x", "strategy.x", "strategy.w"}) EXPECT_TRUE(same(f, first, field)) << field;
    EXPECT_EQ(std::get<double>(f.at("strategy.w")), 1);
    EXPECT_EQ(same(f, two[1], "rule.v"), r == 2);
  }
}

// It is a step behind the others: its state comes from them, and it has still seen its images.
TEST(Pool, AWorkerWithoutStateKeepsItsCounters) {
  comm::in_local_world(2, [&](Communicator& c) {
    Pool p;
    p.add(state_of(c.rank()));
    p.unite(c, c.rank() == 0);
    const Fields f = loaded(p, "allreduce", c.rank(), Differing::kKeepOwn, state_of(0));
    EXPECT_EQ(std::get<double>(f.at("meters.total.images")), 12.5 * (c.rank() + 1));
    EXPECT_TRUE(same(f, state_of(0), "rule.v"));
  });
}

}  // namespace
}  // namespace skein::apps
