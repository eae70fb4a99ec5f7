// The cores for computing and for decoding.
#include "apps/launch/placement.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "data/cores.h"
#include "data/loader.h"

namespace skein::apps {
namespace {

std::vector<int> cores(int n) {
  std::vector<int> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Placement, GivesEveryThreadACoreOfItsOwn) {
  for (const auto& [there, compute, data, workers] :
       {std::array{4, 2, 2, 1}, {4, 1, 1, 2}, {16, 3, 1, 4}, {16, 2, 14, 1}, {17, 3, 1, 4}, {6, 3, 1, 1}}) {
    std::set<int> taken;
    for (int slot = 0; slot < workers; ++slot) {
      const Placement p = place_threads(cores(there), compute, data, slot, workers);
      EXPECT_EQ(int(p.compute.size()), compute);
      EXPECT_EQ(int(p.data.size()), data);
      taken.insert(p.compute.begin(), p.compute.end());
      taken.insert(p.data.begin(), p.data.end());
    }
    EXPECT_EQ(int(taken.size()), (compute + data) * workers) << there;
    EXPECT_LT(*taken.rbegin(), there);
  }
  const Placement p = place_threads({8, 9, 10, 11, 30, 31}, 3, 2, 0, 1);
  EXPECT_EQ(list_cores(p.compute), "8-10");
  EXPECT_EQ(list_cores(p.data), "11,30");
}

TEST(Placement, LeavesThreadsAloneWhereThatIsBetter) {
  EXPECT_TRUE(place_threads(cores(2), 1, 1, 0, 1).data.empty());   // too few cores to keep one free
  EXPECT_TRUE(place_threads(cores(4), 4, 4, 0, 1).data.empty());   // more threads than cores
  EXPECT_TRUE(place_threads(cores(8), 2, 1, 0, 3).data.empty());   // all workers together have too many
  EXPECT_TRUE(place_threads(cores(16), 4, 4, 0, 1).data.empty());  // there is room for another program
  EXPECT_TRUE(place_threads(cores(8), 4, 4, -1, 1).data.empty());  // it is unknown which worker this is
  EXPECT_TRUE(place_threads({}, 1, 1, 0, 1).compute.empty());
}

// Records which cores the threads that read it may use.
class Watched final : public data::DataSource {
 public:
  int64_t size() const override { return 100; }
  const std::vector<std::string>& classes() const override { return classes_; }
  data::ImageSize image() const override { return {1, 1, 1}; }
  int32_t label(int64_t) const override { return 0; }
  bool read(int64_t, const data::View&, const data::ImageSize&, uint8_t*) const override {
    const std::lock_guard lock(mutex_);
    seen_.insert(data::usable_cores());
    return true;
  }
  std::string name(int64_t) const override { return ""; }
  std::vector<float> mean() const override { return {0}; }
  std::vector<float> std() const override { return {1}; }
  std::set<std::vector<int>> seen() const { return seen_; }

 private:
  const std::vector<std::string> classes_{"a", "b"};
  mutable std::mutex mutex_;
  mutable std::set<std::vector<int>> seen_;
};

TEST(Placement, TheLoadersThreadsStayOnTheirCoresAndNoOtherIsMoved) {
  const std::vector<int> all = data::usable_cores();
  ASSERT_FALSE(all.empty());
  const data::Plan plan{[](int64_t) { return int64_t(10); }, [](int64_t, int64_t row) { return row; },
                        [](int64_t, int64_t, int64_t) { return data::View{}; }};
  for (const std::vector<int>& own :
       {std::vector<int>{all.back()}, std::vector<int>{}, std::vector<int>{100000}}) {
    const Watched source;
    data::Loader loader(source, plan, {1, 1, 1}, 0, 10, kCpu, 2, 4, own);
    for (int k = 0; k < 10; ++k) loader.next();
    const bool can = own.size() == 1 && own[0] == all.back();
    EXPECT_EQ(source.seen(), std::set<std::vector<int>>{can ? own : all});
  }
  EXPECT_EQ(data::usable_cores(), all);
}

}  // namespace
}  // namespace skein::apps
