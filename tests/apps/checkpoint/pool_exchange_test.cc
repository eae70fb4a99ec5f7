// How state travels between workers: whole, only where it must, and refused if it is damaged or
// does not match.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/apps/checkpoint/pool_states.h"
#include "tests/support/snapshots.h"

namespace skein::apps {
namespace {

using comm::Communicator;
using comm::Rank;

// Parts of a tensor that are dealt with one after the other, on a wire that would round f32.
TEST(PoolExchange, ALargeTensorArrivesWholeOnANarrowWire) {
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

TEST(PoolExchange, WhatAllHaveAlikeIsSentOnlyToNewcomersAndByAllInTurn) {
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
TEST(PoolExchange, DamagedBytesAreRefusedByAllWorkers) {
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

TEST(PoolExchange, RefusesWhatCannotBeUnited) {
  EXPECT_NE(refusal(2, {}).find("no worker has any state"), std::string::npos);
  const std::string sizes = refusal(3, {{{"x", normal(3, 0)}}, {{"x", normal(4, 0)}}});
  EXPECT_NE(sizes.find("worker 1 has the field 'x' as f32 [4], worker 0 as f32 [3]"), std::string::npos)
      << sizes;
  EXPECT_NE(refusal(2, {{{"x", normal(3, 0)}}, {{"x", std::string("abc")}}}).find("as u8 [3]"),
            std::string::npos);
}

}  // namespace
}  // namespace skein::apps
