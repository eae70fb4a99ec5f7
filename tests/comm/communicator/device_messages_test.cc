// Messages that go from a device's memory to a device's: what they say, whose memory it is when, who decides.
#include "comm/communicator/device_messages.h"

#include "comm/ucx/ucx_look.h"
#include "engine/device/memory.h"
#include "tests/support/roles.h"
#include "tests/support/testing.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using skein::testing::kFirstGpu;
using skein::testing::random_uniform;
using skein::testing::values;

constexpr Device kAside{Device::kApart, 0};

// One of a world of processes whose messages are carried: "cuda/auto" is the device and the transport.
struct Carried {
  Carried(Exchange& e, const std::string& how)
      : device(how.starts_with("cuda") ? kFirstGpu : kAside), transport(connect(e, options(how))) {
    CHECK(transport->devices().trouble(device).empty(), transport->devices().trouble(device));
    transport->devices().land_on(device);
    c.barrier();
  }
  static TransportOptions options(const std::string& how) {
    TransportOptions o = way(how.substr(how.find('/') + 1));
    o.gpu = how.starts_with("cuda");
    return o;
  }
  Tensor there(int64_t n) { return vector_of(c.rank(), n, allocator(kCpu)).to(device); }
  const Device device;
  const std::unique_ptr<Transport> transport;
  Communicator c{*transport, in_seconds(20)};
  const Rank next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
};

void expect_from(const Message& m, Rank from, int64_t n, float factor) {
  const std::vector<double> got = values(m.payload);
  CHECK(m.from == from && int64_t(got.size()) == n, m.from, from, got.size(), n);
  for (int64_t i = 0; i < n; ++i)
    CHECK(float(got[size_t(i)]) == factor * sample(from, i), n, i, got[size_t(i)]);
}

void carry(Exchange& e, const std::string& how) {
  Carried w(e, how);
  int64_t step = 0;
  for (const int64_t n : {0, 1, 13, 5000, 300000, 3000000}) {
    const Tensor x = w.there(n);
    w.c.push({{w.next, 0.5f, 0.25}, {w.last, 0.25f, 0.5}}, 7, step, x);
    fill(x, -1.f);  // ours again
    const Message m = w.c.take(w.last, 7, step, x), other = w.c.take(w.next, 7, step++, x);
    CHECK(m.payload.device() == w.device && m.weight == 0.25 && other.weight == 0.5, n);
    expect_from(m, w.last, n, 0.5f), expect_from(other, w.next, n, 0.25f);
  }
  w.c.push(w.next, 8, 0, 1, w.there(300000));
  CHECK(w.c.take(w.last, 8, 0).payload.device() == w.device, "it went by way of the host");
  w.c.push(w.next, 8, 1, 1, w.there(300000));
  const Message m = w.c.take(w.last, 8, 1, Tensor({300000}));  // like one of the host
  CHECK(m.payload.device() == kCpu);
  expect_from(m, w.last, 300000, 1);
  // The last words of a rank that ends at once arrive.
  w.c.push(w.next, 9, 0, 1, w.there(300000));
  if (w.c.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  expect_from(w.c.take(w.last, 9, 0), w.last, 300000, 1);
}
const AddRole kCarry("carry", carry);

// Memory is written, sent and given back again and again, without waiting for a stream in between.
void reuse(Exchange& e, const std::string& how) {
  Carried w(e, how);
  const int64_t n = 200000;
  const int kRounds = 25;
  const Tensor x({n}, kF32, w.device), y = Tensor::zeros({n}, kF32, w.device);
  for (int k = 0; k < kRounds; ++k) {
    fill(x, float(k + w.c.rank()));
    w.c.push(w.next, 7, k, 1, x);
    if (k >= 3) axpy(y, 1.f, w.c.take(w.last, 7, k - 3).payload);
  }
  for (int k = kRounds - 3; k < kRounds; ++k) axpy(y, 1.f, w.c.take(w.last, 7, k).payload);
  const double want = kRounds * (kRounds - 1) / 2 + kRounds * w.last;
  CHECK(values(y) == std::vector<double>(size_t(n), want), values(y)[0], want);
}
const AddRole kReuse("reuse", reuse);

// What a wire of 16 bits makes of a vector, by either way.
void narrow(Exchange& e, const std::string& how) {
  Carried w(e, how);
  Communicator narrow(*w.transport, {.deadline = 20, .wire = kBF16});
  const auto c = narrow.group({0, 1});
  const Rank other = 1 - c->rank();
  const Tensor x = w.there(300001);
  std::vector<double> by_host;
  for (const bool direct : {false, true}) {
    w.transport->devices().land_on(direct ? w.device : kCpu);
    c->barrier();
    c->push(other, 7, direct, 0.3f, x);
    const Tensor filled = c->wire_buffer(x);
    scaled_copy(filled, 0.3f, x);
    c->push_buffer(other, 8, direct, filled);
    const Message m = c->take(other, 7, direct), same = c->take(other, 8, direct, x, Precision::kWire);
    CHECK(same.payload.dtype() == kBF16 && same.payload.device() == w.device, direct);
    CHECK(values(same.payload) == values(m.payload), direct);
    CHECK(m.payload.dtype() == kF32 && (m.payload.device() == w.device) == direct, direct);
    if (direct)
      CHECK(values(c->beside(x, m).payload) == by_host);
    else
      by_host = values(m.payload);
    c->barrier();
  }
}
const AddRole kNarrow("narrow", narrow);

// Collectives of tensors on a device, polling, handlers.
void other_ways(Exchange& e, const std::string& how) {
  Carried w(e, how);
  const int64_t n = 300000;
  for (const Rank root : {0, 1}) {
    const Tensor y = w.there(n), x = w.there(n);
    w.c.broadcast(y, root);
    expect_from({Header{.from = root}, y}, root, n, 1);
    const std::vector<Tensor> all = w.c.gather(x, root);
    for (size_t r = 0; r < all.size(); ++r) {
      CHECK(all[r].device() == kCpu);
      expect_from({Header{.from = Rank(r)}, all[r]}, Rank(r), n, 1);
    }
    w.c.all_reduce(x).wait();
    const std::vector<double> sum = values(x);
    for (int64_t i = 0; i < n; ++i) CHECK(float(sum[size_t(i)]) == sum_of(w.c.size(), i), i);
  }
  const auto served = w.c.twin();
  const Tensor mine = w.there(n), came({n}, kF32, w.device);
  if (w.c.rank() == 1)
    served->on(5, [&](const Message& m) {
      fill(came, 0.f), axpy(came, 2.f, served->beside(came, m).payload);
      served->push(m.from, 5, m.step, 1, came);
    });
  if (w.c.rank() == 0) {
    w.c.push(1, 5, 0, 1, mine);
    const Message answer = w.c.beside(mine, w.c.take(1, 5, 0));
    CHECK(answer.payload.device() == w.device);
    expect_from({Header{.from = 0}, answer.payload}, 0, n, 2);
  }
  w.c.push(w.next, 6, 0, 1, mine);
  std::optional<Message> m;
  while (!m) m = w.c.poll(w.last, 6);
  expect_from(*m, w.last, n, 1);
  w.c.barrier();
}
const AddRole kOtherWays("other ways", other_ways);

void too_large(Exchange& e, const std::string& how) {
  Carried w(e, how);
  const int64_t n = 3000000;
  if (w.c.rank() == 0) release_cached(w.device), limit_memory(w.device, memory_use(w.device).now + (1 << 20));
  w.c.barrier();
  if (w.c.rank() == 1) w.c.push(0, 7, 0, 1, w.there(n));
  if (w.c.rank() == 0) {
    const Message m = w.c.take(1, 7, 0);
    CHECK(m.payload.device() == kCpu);
    expect_from(m, 1, n, 1);
  }
}
const AddRole kTooLarge("too large", too_large);

void lose(Exchange& e, const std::string& how) {
  Carried w(e, how);
  const Tensor x = w.there(1 << 18);
  if (w.c.rank() == 1) w.c.take(0, 7, 3), raise(SIGKILL);
  const std::string what = expect_throw<PeerLost>([&] {
    for (int64_t k = 0; k < 10; ++k) w.c.push(1, 7, k, 1, x);
    w.c.take(1, 8, 0);
  });
  CHECK(what.find("rank 1") != std::string::npos, what);
}
const AddRole kLosing("lose carried", lose);

void choose(Exchange& e, const std::string& how) {
  const Device d = how.starts_with("cuda") ? kFirstGpu : kAside;
  const auto t = connect(e, Carried::options(how));
  Communicator c(*t, in_seconds(20));
  const Rank other = c.rank() ^ 1;
  int64_t step = 0;
  for (const auto wish : {DeviceMessages::kOn, DeviceMessages::kAuto, DeviceMessages::kOff}) {
    const std::string said = choose_device_messages(c, wish, d, 100000);
    const bool direct = said.find("by UCX from GPU to GPU") != std::string::npos;
    CHECK(t->devices().carries(other, d) == direct, said);
    CHECK(wish == DeviceMessages::kAuto || direct == (wish == DeviceMessages::kOn), said);
    CHECK((said.find("there and back") != std::string::npos) == (wish == DeviceMessages::kAuto), said);
    const Tensor x = vector_of(c.rank(), 300000, allocator(kCpu)).to(d);
    c.push(other, 1, step, 1, x);
    const Message m = c.take(other, 1, step++);
    CHECK((m.payload.device() == d) == direct, said);
    expect_from(m, other, 300000, 1);
  }
}
const AddRole kChoose("choose", choose);

class DeviceMessage : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!GetParam().starts_with("cuda")) return;
    if (cuda_device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    if (const std::string why = ucx_cuda_trouble(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  }
  void run(const std::string& role, int n) {
    Processes p(role, n, GetParam());
    expect_all_end_well(p);
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, DeviceMessage, ::testing::Values("apart/ucx", "cuda/ucx", "cuda/auto"),
                         [](const auto& p) {
                           std::string s = p.param;
                           s[s.find('/')] = '_';
                           return s;
                         });

TEST_P(DeviceMessage, ArrivesOnTheOtherDeviceAsItWasSent) { run("carry", 3); }
TEST_P(DeviceMessage, LeavesMemoryToItsLastUsers) { run("reuse", 2); }
TEST_P(DeviceMessage, IsRoundedOnANarrowWireAsByWayOfTheHost) { run("narrow", 2); }
TEST_P(DeviceMessage, SuitsCollectivesHandlersAndPolls) { run("other ways", 2); }
TEST_P(DeviceMessage, LandsOnTheHostWhereTheDeviceHasNoRoom) { run("too large", 2); }
TEST_P(DeviceMessage, OfALostPeerEndsTheWaitForIt) {
  Processes p("lose carried", 2, GetParam());
  EXPECT_EQ(p.wait(1), 128 + SIGKILL);
  EXPECT_EQ(p.wait(0, 20), 0);
}
TEST_P(DeviceMessage, GoesAsItWasDecided) { run("choose", 2); }

TEST(DeviceMessagesVerdict, WithoutGpusThereIsNothingToSay) {
  for (const auto wish : {DeviceMessages::kAuto, DeviceMessages::kOff}) {
    const MessageVerdict v = decide(wish, {false, false}, "");
    EXPECT_FALSE(v.direct);
    EXPECT_EQ(v.why + v.refused, "");
  }
  EXPECT_EQ(decide(DeviceMessages::kOn, {false, false}, "").refused, "the workers compute on CPUs");
}
TEST(DeviceMessagesVerdict, WhatCannotBeIsRefusedIfAskedForAndNamedIfNot) {
  for (const bool gpu : {true, false}) {
    const std::string trouble = gpu ? "worker 0: UCX lacks it" : "",
                      why = gpu ? trouble : "worker 1 has no GPU";
    EXPECT_EQ(decide(DeviceMessages::kOn, {true, gpu}, trouble).refused, why);
    const MessageVerdict v = decide(DeviceMessages::kAuto, {true, gpu}, trouble);
    EXPECT_FALSE(v.direct);
    EXPECT_EQ(v.refused, "");
    EXPECT_EQ(v.why, "messages between GPUs go by way of the host: " + why);
  }
}
TEST(DeviceMessagesVerdict, TheSlowestPairDecides) {
  EXPECT_TRUE(decide({{0.004, 0.001}, {}, {0.002, 0.003}}, 4096).direct);
  const MessageVerdict v = decide({{0.004, 0.001}, {0.001, 0.005}}, 4096);
  EXPECT_FALSE(v.direct);
  EXPECT_EQ(
      v.why,
      "messages between GPUs go by way of the host, which is faster (4 KiB there and back between neighbors: "
      "5 ms from GPU to GPU, 4 ms by way of the host)");
  EXPECT_FALSE(decide({{0.001, 0.001}}, 4).direct);  // nothing gained
}
TEST(DeviceMessagesVerdict, WordsOtherThanThreeAreRefused) {
  EXPECT_EQ(parse_device_messages("on"), DeviceMessages::kOn);
  EXPECT_THROW(parse_device_messages("yes"), BadOption);
}

TEST(DeviceMessages, OfThreadsOfOneProcessCannotBeAskedFor) {
  in_local_world(3, [](Communicator& c) {
    const std::string why =
        expect_throw<BadOption>([&] { choose_device_messages(c, DeviceMessages::kOn, kAside, 10); });
    EXPECT_NE(why.find("--device-messages on: "), std::string::npos) << why;
    EXPECT_NE(choose_device_messages(c, DeviceMessages::kAuto, kAside, 10).find("by way of the host: "),
              std::string::npos);
    EXPECT_EQ(choose_device_messages(c, DeviceMessages::kAuto, kCpu, 10), "");
  });
}

}  // namespace
}  // namespace skein::comm
