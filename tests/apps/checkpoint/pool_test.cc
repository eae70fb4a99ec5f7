// State united from memory: the same as from files, however it travels, and nothing travels that need not.
#include "apps/checkpoint/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "apps/checkpoint/pool_table.h"
#include "apps/checkpoint/reshare.h"
#include "tests/support/checkpoints.h"
#include "tests/support/snapshots.h"
#include "tests/support/world.h"

namespace skein::apps {
namespace {

using comm::Communicator;
using comm::Rank;
using Fields = optim::Snapshot::Fields;

Tensor normal(int64_t n, uint64_t which) {
  const Tensor t({n});
  fill_normal(t, {.seed = 3, .purpose = Purpose::kTest, .step = which}, 0, 1);
  return t;
}

// Fields of every kind, some alike on all workers, some not, some with few of them.
Fields state_of(int worker) {
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

Walk walk_of(Fields& fields) {
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

// The pools of a world in which the ranks named have these states, in this order, and the others none.
std::vector<Pool> from_memory(int world, const std::vector<Rank>& ranks, const std::vector<Fields>& states) {
  std::vector<Pool> pools(static_cast<size_t>(world));
  comm::in_local_world(world, [&](Communicator& c) {
    const auto at = std::find(ranks.begin(), ranks.end(), c.rank());
    Pool& mine = pools[size_t(c.rank())];
    if (at != ranks.end()) mine.add(states[size_t(at - ranks.begin())]);
    mine.unite(c, at != ranks.end());
  });
  return pools;
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

std::vector<Fields> states(int workers) {
  std::vector<Fields> all;
  for (int w = 0; w < workers; ++w) all.push_back(state_of(w));
  return all;
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

// Parts of a tensor that are dealt with one after the other, on a wire that would round f32.
TEST(Pool, ALargeTensorArrivesWholeOnANarrowWire) {
  constexpr int64_t kSize = 2 * (int64_t(1) << 22) + 5;
  const Tensor x = normal(kSize, 1);
  std::vector<Fields> two(2);
  for (int w = 0; w < 2; ++w) two[size_t(w)]["x"] = x, two[size_t(w)]["v"] = normal(kSize, 2 + uint64_t(w));
  comm::in_local_world(3,
                       [&](Communicator& c) {
                         Pool p;
                         if (c.rank() > 0) p.add(two[size_t(c.rank() - 1)]);
                         p.unite(c, c.rank() > 0);
                         EXPECT_TRUE(optim::same_bits(p.tensors().at("x"), x));
                         for (const int64_t i : {int64_t(0), kSize / 2, kSize - 1}) {
                           double sum = 0;
                           for (const Fields& f : two)
                             sum += double(std::get<Tensor>(f.at("v")).data<float>()[i]);
                           EXPECT_EQ(p.tensors().at("v").data<float>()[i], float(sum / 2));
                         }
                       },
                       {.deadline = 60, .wire = kBF16});
}

TEST(Pool, WhatAllHaveAlikeIsSentOnlyToNewcomersAndByAllInTurn) {
  constexpr int64_t kSize = 300'000, kTalk = 20'000;
  for (const bool newcomer : {false, true}) {
    comm::in_local_world(newcomer ? 4 : 3, [&](Communicator& c) {
      Pool p;
      if (c.rank() < 3) p.add({{"x", normal(kSize, 1)}, {"v", normal(kSize, 2)}});
      p.unite(c, c.rank() < 3);
      const int64_t sent = c.meter().traffic().bytes, share = newcomer ? 2 * kSize * 4 / 3 : 0;
      EXPECT_LT(sent, c.rank() < 3 ? share + kTalk : kTalk) << c.rank();
      if (c.rank() < 3) { EXPECT_GE(sent, share) << c.rank(); }
    });
  }
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

// A transport that changes a byte in the payloads of some size.
class Damaging final : public comm::Transport {
 public:
  Damaging(std::unique_ptr<Transport> inner, int64_t bytes) : inner_(std::move(inner)), bytes_(bytes) {
    for (Rank r = 0; r < inner_->size(); ++r) doors_.push_back(std::make_unique<Door>(*this, r));
  }
  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  comm::Endpoint& to(Rank r) override { return *doors_.at(size_t(r)); }
  comm::Mailbox& mailbox() override { return inner_->mailbox(); }
  void wait(const comm::Key& k, comm::Clock::time_point until) override { inner_->wait(k, until); }

 private:
  struct Door final : comm::Endpoint {
    Door(Damaging& t, Rank peer) : t(t), peer(peer) {}
    const char* name() const override { return "damaging"; }
    void send(const comm::Header& h, Tensor payload, comm::Clock::time_point deadline) override {
      if (payload.bytes() == t.bytes_) {
        payload = payload.clone();
        static_cast<char*>(payload.raw())[payload.bytes() / 2] ^= 1;
      }
      t.inner_->to(peer).send(h, std::move(payload), deadline);
    }
    Damaging& t;
    const Rank peer;
  };
  const std::unique_ptr<Transport> inner_;
  const int64_t bytes_;
  std::vector<std::unique_ptr<Door>> doors_;
};

// One of two that have the field damages its half; what arrives on the others are sums or copies.
TEST(Pool, DamagedBytesAreRefusedByAllWorkers) {
  for (const bool differ : {false, true}) {
    auto world = comm::local_world(3);
    for (auto& t : world) t = std::make_unique<Damaging>(std::move(t), t->rank() == 1 ? 50'000 * 4 : -1);
    std::vector<std::string> said(3);
    comm::in_world(world, [&](Communicator& c) {
      Pool p;
      if (c.rank() < 2) p.add({{"x", normal(100'000, differ ? uint64_t(c.rank()) : 0)}});
      try {
        p.unite(c, c.rank() < 2);
      } catch (const Error& e) { said[size_t(c.rank())] = e.what(); }
    });
    EXPECT_NE(said[0].find("field 'x' came damaged to worker"), std::string::npos) << said[0];
    EXPECT_NE(said[0].find("from workers 0, 1"), std::string::npos) << said[0];
    EXPECT_EQ(said[1], said[0]);
    EXPECT_EQ(said[2], said[0]);
  }
}

std::string refusal(int world, const std::vector<Fields>& states) {
  std::vector<Rank> ranks(states.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  try {
    from_memory(world, ranks, states);
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(Pool, RefusesWhatCannotBeUnited) {
  EXPECT_NE(refusal(2, {}).find("no worker has any state"), std::string::npos);
  const std::string sizes = refusal(3, {{{"x", normal(3, 0)}}, {{"x", normal(4, 0)}}});
  EXPECT_NE(sizes.find("worker 1 has the field 'x' as f32 [4], worker 0 as f32 [3]"), std::string::npos)
      << sizes;
  EXPECT_NE(refusal(2, {{{"x", normal(3, 0)}}, {{"x", std::string("abc")}}}).find("as u8 [3]"),
            std::string::npos);
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

TEST(PoolTable, ReadsBackAsItWasWritten) {
  PoolTable t;
  t.has_state = true;
  t.tensors["a \"quoted\" name"] = {kI64, {2, 0, 3}, "abc"};
  t.tensors["scalar"] = {kBF16, {}, ""};
  t.wholes = {{"least", INT64_MIN}, {"most", INT64_MAX}};
  t.reals = {{"infinite", -INFINITY}, {"zero", -0.0}, {"third", 1.0 / 3}};
  const PoolTable back = table_of(to_text(t));
  EXPECT_TRUE(back.has_state);
  EXPECT_EQ(back.tensors, t.tensors);
  EXPECT_EQ(back.wholes, t.wholes);
  for (const auto& [name, v] : t.reals) EXPECT_TRUE(optim::same_bits(back.reals.at(name), v)) << name;
  for (const char* bad :
       {"", "{}", R"({"has_state":true,"tensors":{"x":[9,[1],"a"]},"wholes":{},"reals":{}})",
        R"({"has_state":true,"tensors":{"x":[0,[-1],"a"]},"wholes":{},"reals":{}})",
        R"({"has_state":true,"tensors":{"x":[0,[4294967296,4294967296],"a"]},"wholes":{},"reals":{}})",
        R"({"has_state":true,"tensors":{},"wholes":{"k":0.5},"reals":{}})"})
    EXPECT_THROW(table_of(bad), Error) << bad;
}

TEST(PoolTable, AHashIsOfEveryPieceAndOfTheirOrder) {
  const int64_t piece = int64_t(1) << 22;
  const Tensor a = Tensor::zeros({2 * piece + 1}, kU8);
  const std::string zeros = hash_of(a);
  std::set<std::string> hashes = {zeros};
  for (const int64_t at : {int64_t(0), piece - 1, piece, 2 * piece}) {
    a.data<uint8_t>()[at] = 1;
    hashes.insert(hash_of(a));
    a.data<uint8_t>()[at] = 0;
  }
  EXPECT_EQ(hashes.size(), 5u);
  EXPECT_EQ(hash_of(a), zeros);
}

}  // namespace
}  // namespace skein::apps
