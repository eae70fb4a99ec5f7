// Which way sums between GPUs go, and the way through a group of devices, with threads in the devices' place.
#include "comm/communicator/device_way.h"

#include <atomic>
#include <cstring>

#include "comm/communicator/staging.h"
#include "tests/support/fake_group.h"
#include "tests/support/says.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using skein::testing::Table;

// Counts what goes through it; counts shared by all members.
struct Counts {
  std::atomic<int> formed{0}, sums{0}, broadcasts{0}, aborted{0};
};

class FakeGroup final : public DeviceGroup {
 public:
  FakeGroup(const std::string& id, int rank, int size, Device d, Counts& counts)
      : rank_(rank), device_(d), table_(skein::testing::table_of(id, size)), counts_(counts) {
    ++counts_.formed;
  }
  Device device() const override { return device_; }
  void all_reduce(const Tensor& x, Stream&) override {
    ++counts_.sums;
    meet(x, [&](const std::vector<void*>& all) {
      if (x.dtype() == kF32) skein::testing::sum_into_all<float>(all, x.size());
      if (x.dtype() == kI64) skein::testing::sum_into_all<int64_t>(all, x.size());
    });
  }
  void broadcast(const Tensor& x, int root, Stream&) override {
    ++counts_.broadcasts;
    meet(x, [&](const std::vector<void*>& all) {
      for (void* to : all)
        if (to != all[size_t(root)]) std::memcpy(to, all[size_t(root)], size_t(x.bytes()));
    });
  }
  void check_health() const override {
    if (table_->ended()) throw Error("a member is gone");
  }
  void abort() noexcept override { ++counts_.aborted, table_->end(); }

 private:
  template <class F>
  void meet(const Tensor& x, F f) {
    if (!table_->meet(rank_, x.raw(), f)) throw Error("the group was ended");
  }
  const int rank_;
  const Device device_;
  const std::shared_ptr<Table> table_;
  Counts& counts_;
};

DeviceGroups fake_groups(Counts& counts) {
  static std::atomic<int> next{0};
  return {.name = "threads 1.0",
          .new_id = [] { return text("group ", next++); },
          .form = [&counts](const std::string& id, int rank, int size, Device d,
                            double) -> std::unique_ptr<DeviceGroup> {
            return std::make_unique<FakeGroup>(id, rank, size, d, counts);
          }};
}
DeviceOffer offer(Counts& counts, Rank r) {
  return {.device = kCpu, .gpu = text("gpu ", r), .groups = fake_groups(counts), .trouble = ""};
}
DeviceOffer has(const std::string& gpu) {
  DeviceOffer o{.device = kCpu, .gpu = gpu, .groups = {}, .trouble = ""};
  o.groups.name = "NCCL 2.28.9";
  o.groups.form = [](auto&&...) { return nullptr; };
  return o;
}

TEST(DeviceVerdict, AGpuForEveryWorkerMeansNccl) {
  const DeviceVerdict v = decide(DeviceWish::kAuto, {has("a"), has("b"), has("c")});
  EXPECT_TRUE(v.group);
  EXPECT_EQ(v.why, "sums between GPUs go through NCCL 2.28.9: every worker has a GPU of its own");
}
TEST(DeviceVerdict, ElseTheHostAndItSaysWhy) {
  EXPECT_SAYS(decide(DeviceWish::kAuto, {has("a"), has("b"), has("a")}).why, "workers 0 and 2 share a GPU");
  EXPECT_SAYS(decide(DeviceWish::kAuto, {has("a"), has("")}).why, "worker 1 has no GPU");
  DeviceOffer bare = has("b");
  bare.groups = {}, bare.trouble = "NCCL cannot be loaded";
  EXPECT_SAYS(decide(DeviceWish::kAuto, {has("a"), bare}).why, "worker 1: NCCL cannot be loaded");
  DeviceOffer exact = has("b");
  exact.repeatable = true;
  EXPECT_SAYS(decide(DeviceWish::kAuto, {has("a"), exact}).why, "in rank order");
  EXPECT_SAYS(decide(DeviceWish::kHost, {has("a"), has("b")}).why, "as asked");
  EXPECT_EQ(decide(DeviceWish::kAuto, {has(""), has("")}).why, "");
}
TEST(DeviceVerdict, AWishThatCannotBeIsRefused) {
  EXPECT_SAYS(decide(DeviceWish::kGroup, {has("a"), has("a")}).refused, "share a GPU");
  EXPECT_SAYS(decide(DeviceWish::kGroup, {has(""), has("")}).refused, "compute on CPUs");
  EXPECT_TRUE(decide(DeviceWish::kGroup, {has("a"), has("b")}).group);
}

TEST(DeviceWay, SumsAndBroadcastsGoThroughTheGroup) {
  Counts counts;
  in_local_world(3, [&](Communicator& c) {
    const std::string said = c.use_devices(DeviceWish::kAuto, offer(counts, c.rank()));
    EXPECT_SAYS(said, "threads 1.0");
    const Tensor x = Tensor::of<float>({3}, {1, 2, float(c.rank())}),
                 y = Tensor::of<int64_t>({1}, {c.rank()});
    Pendings all;
    all += c.all_reduce(x);
    all += c.all_reduce(y);
    all.wait();
    EXPECT_EQ(x.data<float>()[0], 3.f);
    EXPECT_EQ(x.data<float>()[2], 3.f);
    EXPECT_EQ(y.data<int64_t>()[0], 3);
    const Tensor z = Tensor::of<float>({1}, {float(c.rank())});
    c.broadcast(z, 2);
    EXPECT_EQ(z.data<float>()[0], 2.f);
    c.barrier();  // messages go on beside it
  });
  EXPECT_EQ(counts.formed, 3);  // once a rank, at the first use
  EXPECT_EQ(counts.sums, 6);
  EXPECT_EQ(counts.broadcasts, 3);
}

TEST(DeviceWay, GroupsFormTheirOwn) {
  Counts counts;
  in_local_world(4, [&](Communicator& c) {
    c.use_devices(DeviceWish::kGroup, offer(counts, c.rank()));
    const auto half = c.group(c.rank() % 2 ? std::vector<Rank>{1, 3} : std::vector<Rank>{0, 2});
    const Tensor x = Tensor::of<float>({1}, {float(c.rank())});
    half->all_reduce(x).wait();
    EXPECT_EQ(x.data<float>()[0], c.rank() % 2 ? 4.f : 2.f);
  });
  EXPECT_EQ(counts.formed, 4);
  EXPECT_EQ(counts.sums, 4);
}

TEST(DeviceWay, TheHostDoesItWhereGpusAreShared) {
  Counts counts;
  in_local_world(2, [&](Communicator& c) {
    EXPECT_SAYS(c.use_devices(DeviceWish::kAuto, offer(counts, 0)), "workers 0 and 1 share a GPU");
    const Tensor x = Tensor::of<float>({2}, {1, float(c.rank())});
    c.all_reduce(x).wait();
    EXPECT_EQ(x.data<float>()[0], 2.f);
    EXPECT_EQ(x.data<float>()[1], 1.f);
  });
  EXPECT_EQ(counts.formed, 0);
}

TEST(DeviceWay, ARefusedWishIsOneErrorOnAllRanks) {
  Counts counts;
  std::atomic<int> refused{0};
  in_local_world(3, [&](Communicator& c) {
    try {
      c.use_devices(DeviceWish::kGroup, offer(counts, c.rank() == 2 ? 1 : c.rank()));
    } catch (const BadOption& e) {
      EXPECT_STREQ(e.what(), "--collectives nccl: workers 1 and 2 share a GPU");
      ++refused;
    }
  });
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace skein::comm
