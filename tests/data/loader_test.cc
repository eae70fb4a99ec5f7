// The loader: batches do not depend on the number of threads, errors surface, and it stops quickly.
#include "data/loader.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/data/spans.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

// Image i is filled with i (mod 251), its label is i; every `bad`-th cannot be read, sample `thrower` throws.
class Numbered final : public DataSource {
 public:
  explicit Numbered(int64_t size, int64_t bad = 0, int64_t thrower = -1, int delay_us = 0)
      : size_(size), bad_(bad), thrower_(thrower), delay_us_(delay_us) {}
  int64_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  ImageSize image() const override { return {4, 4, 3}; }
  int32_t label(int64_t i) const override { return int32_t(i); }
  bool read(int64_t i, const View&, const ImageSize& out, uint8_t* pixels) const override {
    if (delay_us_) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    if (i == thrower_) throw Error("sample that throws");
    std::fill_n(pixels, out.height * out.width * out.channels, uint8_t(i % 251));
    ++reads;
    return bad_ == 0 || i % bad_ != 0;
  }
  std::string name(int64_t i) const override { return text("number ", i); }
  std::vector<float> mean() const override { return {0, 0, 0}; }
  std::vector<float> std() const override { return {1, 1, 1}; }
  mutable std::atomic<int> reads{0};

 private:
  const int64_t size_, bad_, thrower_;
  const int delay_us_;
  const std::vector<std::string> classes_{"a", "b"};
};

Plan in_order(int64_t size, int64_t batch) {
  return {[=](int64_t step) { return std::min(batch, size - step * batch); },
          [=](int64_t step, int64_t row) { return step * batch + row; },
          [](int64_t, int64_t, int64_t) { return View{}; }};
}

// A trainer's plan: shuffled and augmented, epoch after epoch.
Plan shuffled(int64_t size, int64_t batch, ImageSize out) {
  const int64_t per_epoch = steps_per_epoch(size, batch);
  return {[=](int64_t k) { return span_of(size, batch, k % per_epoch, 0, 1).size(); },
          [=](int64_t k, int64_t row) {
            return sample_index(3, size, k / per_epoch,
                                span_of(size, batch, k % per_epoch, 0, 1).begin + row);
          },
          [=](int64_t k, int64_t, int64_t index) {
            return train_view(Augment::kShift, 3, k / per_epoch, index, out);
          }};
}

struct Copied {
  Bytes images;
  std::vector<int32_t> labels;
  int64_t step, unreadable;
  bool operator==(const Copied&) const = default;
};
Copied copy_of(const Batch& b) {
  const auto* images = b.images.data<uint8_t>();
  const auto* labels = b.labels.data<int32_t>();
  return {{images, images + b.images.size()}, {labels, labels + b.labels.size()}, b.step, b.unreadable};
}
std::vector<Copied> all(const DataSource& s, const Plan& plan, ImageSize out, int64_t first, int64_t last,
                        int threads, int depth = 4) {
  Loader loader(s, plan, out, first, last, kCpu, threads, depth);
  std::vector<Copied> batches;
  for (int64_t k = first; k < last; ++k) batches.push_back(copy_of(loader.next()));
  return batches;
}

TEST(Loader, DeliversThePlanInOrder) {
  const Numbered source(1000);
  Loader loader(source, in_order(1000, 7), {4, 4, 3}, 0, 143, kCpu, 3);
  for (int64_t k = 0; k < 143; ++k) {
    const Batch b = loader.next();
    ASSERT_EQ(b.step, k);
    ASSERT_EQ(b.size(), k == 142 ? 6 : 7);
    ASSERT_EQ(b.images.shape(), (Shape{b.size(), 4, 4, 3}));
    for (int64_t r = 0; r < b.size(); ++r) {
      ASSERT_EQ(b.labels.data<int32_t>()[r], k * 7 + r);
      for (int p = 0; p < 48; ++p) ASSERT_EQ(b.images.data<uint8_t>()[r * 48 + p], (k * 7 + r) % 251);
    }
  }
  EXPECT_THROW(loader.next(), Error);
}

TEST(Loader, BytesDoNotDependOnThreadsOrDepth) {
  const Split split = open_data("synthetic:12x10x3,train=300", 5);
  const ImageSize out{12, 10, 3};
  const Plan plan = shuffled(300, 32, out);
  const auto one = all(*split.train, plan, out, 0, 25, 1);
  EXPECT_EQ(one[9].labels.size(), 300u % 32);
  EXPECT_NE(one[0], one[10]);  // the second epoch differs
  EXPECT_EQ(all(*split.train, plan, out, 0, 25, 4), one);
  EXPECT_EQ(all(*split.train, plan, out, 0, 25, 2, 1), one);
  EXPECT_EQ(all(*split.train, plan, out, 0, 25, 7, 9), one);
}

TEST(Loader, ResumesAtAnyStep) {
  const Split split = open_data("synthetic:8x8x1,train=100", 5);
  const ImageSize out{8, 8, 1};
  const Plan plan = shuffled(100, 24, out);
  const auto whole = all(*split.train, plan, out, 0, 12, 2);
  for (const int64_t first : {1, 4, 5, 11, 12}) {
    const auto rest = all(*split.train, plan, out, first, 12, 2);
    EXPECT_EQ(rest, std::vector<Copied>(whole.begin() + first, whole.end())) << first;
  }
}

TEST(Loader, ABatchStaysUntilTheCallAfterTheNext) {
  const Numbered source(1000);
  Loader loader(source, in_order(1000, 10), {4, 4, 3}, 0, 100, kCpu, 4, 1);
  Batch previous = loader.next();
  for (int64_t k = 1; k < 100; ++k) {
    const Copied before = copy_of(previous);
    const Batch current = loader.next();
    std::this_thread::sleep_for(
        std::chrono::microseconds(200));  // time for a worker to write where it must not
    ASSERT_EQ(copy_of(previous), before) << k;
    previous = current;
  }
}

TEST(Loader, UnreadableRowsAreZeroUnlabeledCountedAndNamedOnce) {
  const Numbered source(20, 7);  // 0, 7 and 14
  Plan plan = in_order(20, 10);
  plan.count = [](int64_t) { return int64_t(10); };
  plan.index = [](int64_t step, int64_t row) { return step % 2 * 10 + row; };  // four epochs of two steps
  Loader loader(source, plan, {4, 4, 3}, 0, 8, kCpu, 3);
  const Batch b = loader.next();
  EXPECT_EQ(b.unreadable, 2);
  for (const int64_t row : {0, 7}) {
    EXPECT_EQ(b.labels.data<int32_t>()[row], -1);
    for (int p = 0; p < 48; ++p) ASSERT_EQ(b.images.data<uint8_t>()[row * 48 + p], 0);
  }
  EXPECT_EQ(b.labels.data<int32_t>()[1], 1);
  const auto named = [&] {
    std::vector<std::string> all;
    for (const Unreadable& u : loader.newly_unreadable()) all.push_back(text(u.name, ": ", u.why));
    return all;
  };
  const std::string why =
      ": damaged, or larger than 2^28 pixels or 512 MiB when decoded";  // the source gave no reason
  EXPECT_EQ(named(), (std::vector<std::string>{"number 0" + why, "number 7" + why}));
  EXPECT_EQ(loader.unreadable(), 2);
  for (int k = 1; k < 8; ++k) loader.next();
  EXPECT_EQ(named(), std::vector<std::string>{"number 14" + why});
  EXPECT_EQ(loader.unreadable(), 12);
}

// What was read ahead does not count yet, so that an interrupted run counts what it trained on.
TEST(Loader, OddFilesAreThoseOfTheBatchesHandedOutEachOnce) {
  const Numbered source(20, 7);
  Plan plan = in_order(20, 10);
  plan.count = [](int64_t) { return int64_t(10); };
  plan.index = [](int64_t step, int64_t row) { return step % 2 * 10 + row; };
  Loader loader(source, plan, {4, 4, 3}, 0, 8, kCpu, 1);
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(loader.odd().count(kUndecodable), 2);  // 0 and 7, for which the source gave no other reason
  for (int k = 1; k < 8; ++k) loader.next();
  EXPECT_EQ(loader.odd().count(kUndecodable), 3);
  EXPECT_EQ(loader.odd().left_out(), 3);
  EXPECT_EQ(loader.odd().converted(), 0);
}

TEST(Loader, EmptyStepsAreEmptyBatches) {
  const Numbered source(10);
  Plan plan = in_order(10, 2);
  plan.count = [](int64_t step) { return step % 2; };
  Loader loader(source, plan, {4, 4, 3}, 0, 5, kCpu, 2);
  for (int64_t k = 0; k < 5; ++k) {
    const Batch b = loader.next();
    EXPECT_EQ(b.size(), k % 2);
    EXPECT_EQ(b.labels.dim(0), k % 2);
  }
}

TEST(Loader, AWorkersExceptionReachesNextAndStays) {
  const Numbered source(1000, 0, 57);
  for (const int threads : {1, 4}) {
    Loader loader(source, in_order(1000, 10), {4, 4, 3}, 0, 100, kCpu, threads);
    for (int k = 0; k < 5; ++k) loader.next();
    for (int again = 0; again < 2; ++again)
      expect_says(message_of<Error>([&] { loader.next(); }), {"sample that throws"});
  }
}

TEST(Loader, APlanBeyondTheSourceIsAnError) {
  const Numbered source(10);
  Loader beyond(source, in_order(1000, 20), {4, 4, 3}, 0, 2, kCpu, 2);
  expect_says(message_of<Error>([&] { beyond.next(); }), {"does not exist", "10"});
  Plan plan = in_order(10, 2);
  plan.count = [](int64_t) -> int64_t { throw Error("no count"); };
  Loader uncounted(source, plan, {4, 4, 3}, 0, 2, kCpu, 2);
  expect_says(message_of<Error>([&] { uncounted.next(); }), {"no count"});
}

TEST(Loader, EndsQuicklyWhereverItIs) {
  const Numbered slow(100000, 0, -1, 1000);
  const auto from = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    Loader loader(slow, in_order(100000, 5000), {4, 4, 3}, 0, 20, kCpu, 4);
    if (i % 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(5));
  const Numbered source(10);
  Loader nothing_to_do(source, in_order(10, 2), {4, 4, 3}, 3, 3, kCpu, 2);
  EXPECT_THROW(nothing_to_do.next(), Error);
}

TEST(Loader, ManyLiveSideBySide) {
  const Split split = open_data("synthetic:8x8x3,train=200", 5);
  const ImageSize out{8, 8, 3};
  const Plan plan = shuffled(200, 16, out);
  const auto expected = all(*split.train, plan, out, 0, 20, 1);
  std::atomic<int> same{0};
  std::vector<std::thread> users;
  for (int i = 0; i < 8; ++i)
    users.emplace_back([&] { same += all(*split.train, plan, out, 0, 20, 2, 2) == expected; });
  for (std::thread& t : users) t.join();
  EXPECT_EQ(same, 8);
}

TEST(Loader, CountsOnlyTheTimeItIsWaitedFor) {
  const Numbered slow(100, 0, -1, 20000);
  Loader loader(slow, in_order(100, 1), {4, 4, 3}, 0, 4, kCpu, 1, 4);
  while (slow.reads < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the last is handed over by then
  for (int k = 0; k < 4; ++k) loader.next();
  EXPECT_LT(loader.seconds().wait, 0.01);
  Loader hurried(slow, in_order(100, 1), {4, 4, 3}, 0, 4, kCpu, 1, 1);  // never a batch ahead
  const auto from = std::chrono::steady_clock::now();
  for (int k = 0; k < 4; ++k) hurried.next();
  EXPECT_GT(hurried.seconds().wait, 0.02);
  EXPECT_LE(hurried.seconds().wait,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
}

}  // namespace
}  // namespace skein::data
