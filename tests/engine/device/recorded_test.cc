// The rules of recorded work: its keys, threads, and what cannot be recorded.
#include "engine/device/graph.h"

#include <thread>

#include "engine/vectors/mix.h"
#include "engine/vectors/vec.h"
#include "tests/engine/device/recordings.h"
#include "tests/support/testing.h"

namespace skein {
namespace {
using namespace testing;
using Way = Recorded::Way;

class Recordings : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Recordings, kDevices, device_name);

TEST_P(Recordings, KeysAreRecordedApartAndShareMemory) {
  const Device d = GetParam();
  const Tensor x({64, 10}, kF32, d), out({64, 10}, kF32, d);
  fill(x, 1.f);
  Recorded work(d, "rows");
  const auto run = [&](int64_t rows) {
    fill(out, 0.f);
    work.run({rows}, [&] { copy(out.view({rows, 10}), exp(x.view({rows, 10}))); });
    const std::vector<double> v = values(out);
    for (int64_t i = 0; i < 640; ++i) EXPECT_EQ(v[size_t(i)] != 0, i < rows * 10) << rows << ' ' << i;
  };
  for (int64_t rows : {64, 64, 64, 3, 64, 3, 3, 64}) run(rows);
  EXPECT_GT(work.length({3}), 0);
  EXPECT_EQ(work.length({5}), 0);
}

TEST_P(Recordings, OfManyKeysTheRestRunsPlainly) {
  const Device d = GetParam();
  const Tensor x({64}, kF32, d), out({64}, kF32, d);
  fill(x, 1.f);
  Recorded work(d, "rows");
  for (int round = 0; round < 3; ++round)
    for (int64_t rows = 1; rows <= 20; ++rows) {
      fill(out, 0.f);
      const Way way = work.run({rows}, [&] { scaled_copy(out.view({rows}), 2.f, x.view({rows})); });
      EXPECT_EQ(way == Way::kPlain, rows > int64_t(Recorded::kMostKeys));
      EXPECT_EQ(values(out)[size_t(rows - 1)], 2);
    }
}

TEST_P(Recordings, ThreadsRecordAndReplayAtTheSameTime) {
  const Device d = GetParam();
  std::vector<double> last(3);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < last.size(); ++t)
    threads.emplace_back([&, t] {
      const Tensor x({20000}, kF32, d), y({20000}, kF32, d);
      Recorded work(d, "a thread's");
      for (int run = 1; run < 20; ++run) {
        fill(x, float(t + 1));
        work.run({}, [&] { copy(y, add(add(x, x), x)); });
        axpy(x, float(run), y);
      }
      last[t] = values(x)[19999];
      EXPECT_TRUE(work.refused().empty()) << work.refused();
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < last.size(); ++t) EXPECT_EQ(last[t], double(t + 1) * (1 + 3 * 19));
}

TEST_P(Recordings, TheHostsShareHappensAtEveryRunInItsPlace) {
  const Device d = GetParam();
  const Tensor x({4}, kF32, d), y({4}, kF32, d);
  Recorded work(d, "two halves");
  std::vector<double> seen;
  for (int run = 0; run < 5; ++run) {
    fill(x, float(run));
    work.run({}, [&] {
      copy(y, add(x, x));
      between_recorded([&seen, y] { seen.push_back(y.view({1}).item()); });  // may even wait
      scale(y, 10.f);
    });
    EXPECT_EQ(values(y)[3], 20.0 * run);
  }
  EXPECT_EQ(seen, (std::vector<double>{0, 2, 4, 6, 8}));
}

TEST_P(Recordings, WhatCannotBeRecordedRunsPlainly) {
  const Device d = GetParam();
  const Tensor x({4}, kF32, d), total({1}, kF32, d);
  fill(x, 1.f);
  fill(total, 0.f);
  std::vector<std::string> said;
  Recorded work(d, "the body", [&](const std::string& s) { said.push_back(s); });
  std::vector<Way> ways;
  for (int run = 0; run < 4; ++run)
    ways.push_back(work.run({}, [&] {
      axpy(total, 1.f, x.view({1}));
      if (norm(x) < 0) fill(x, 0.f);
    }));
  EXPECT_EQ(ways, (std::vector<Way>{Way::kWarmUp, Way::kPlain, Way::kPlain, Way::kPlain}));
  EXPECT_EQ(values(total)[0], 4);  // once a run, the one given up too
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0],
            "the body is not recorded and runs plainly: a sum over a vector is read back to the host");
  EXPECT_EQ(work.refused(), "a sum over a vector is read back to the host");
  EXPECT_EQ(bytes_of(work.memory()), 0);
}

TEST_P(Recordings, AStateThatMovesIsAnError) {
  const Device d = GetParam();
  Tensor state({1000}, kF32, d);
  fill(state, 1.f);
  Recorded work(d, "the body");
  const auto body = [&] {
    const Tensor next({1000}, kF32, d);
    scaled_copy(next, 2.f, state);
    state = next;
  };
  work.run({}, body);  // makes it in the pool
  EXPECT_THROW(work.run({}, body), Error);
}

TEST_P(Recordings, AnErrorInTheBodyLeavesTheThreadAsItWas) {
  const Device d = GetParam();
  const Tensor x({4}, kF32, d), y({4}, kF32, d);
  fill(x, 3.f);
  Recorded work(d, "the body");
  bool bad = false;
  const auto body = [&] {
    copy(y, add(x, x));
    if (bad) throw BadFile("gone");
  };
  work.run({}, body);
  bad = true;
  EXPECT_THROW(work.run({}, body), BadFile);
  EXPECT_FALSE(records(d));
  fill(y, 1.f);  // runs at once
  EXPECT_EQ(values(y)[0], 1);
  bad = false;
  EXPECT_EQ(work.run({}, body), Way::kRecorded);
  EXPECT_EQ(values(y)[0], 6);
}

TEST_P(Recordings, RecordingsDoNotNest) {
  const Device d = GetParam();
  Recorded outer(d, "the outer"), inner(d, "the inner");
  try {
    outer.run({}, [&] { inner.run({}, [] {}); });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "the inner is asked for while the outer is recorded: recordings do not nest");
  }
  for (int run = 0; run < 3; ++run)  // but in between_recorded() they may
    outer.run({1}, [&] { between_recorded([&] { inner.run({}, [] {}); }); });
}

TEST_P(Recordings, ALabelOutOfRangeIsFoundInAReplayToo) {
  if (GetParam().is_cuda()) GTEST_SKIP() << "a device answers NaN";
  const Tensor logits = random_normal({2, 3}, 1), labels = Tensor::of<int32_t>({2}, {0, 1}), out({1});
  Recorded work(kCpu, "the loss");
  const auto body = [&] { copy(out, cross_entropy(logits, labels)); };
  for (int run = 0; run < 3; ++run) work.run({}, body);
  labels.data<int32_t>()[1] = 3;
  EXPECT_THROW(work.run({}, body), Error);
}

}  // namespace
}  // namespace skein
