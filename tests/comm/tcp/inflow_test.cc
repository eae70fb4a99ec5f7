// Sealed messages in a stream of bytes: what arrives, and what becomes of streams that were tampered with.
#include "comm/tcp/inflow.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace skein::comm {
namespace {

// The two ends of a connection from rank 1 to rank 0, and a spy on it.
struct Wire {
  explicit Wire(bool hides = true, int64_t bound = int64_t(1) << 29) : box(0, 2, bound) {
    const Secret key(std::string(kJobKeyBytes, 'k'));
    const std::string salt = random_salt();
    Call call({.key = key, .me = 1, .size = 2, .hides = hides}, 0, Purpose::kMessages);
    Reply reply = *reply_to(call.hello(salt), salt, {.key = key, .me = 0, .size = 2, .hides = hides});
    out = std::make_unique<Outflow>(std::move(call.conclude(reply.words)->out));
    in = std::make_unique<Inflow>(1, std::move(reply.session.in), box);
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    near = Fd(ends[0]), far = Fd(ends[1]);
    const int room = 4 << 20;
    for (const Fd* s : {&near, &far}) setsockopt(s->get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  }
  void add(int64_t step, const Tensor& x, uint32_t piece = 0, uint32_t pieces = 1, int64_t all = -1,
           Tag tag = 7) {
    Header h;
    h.from = 1, h.tag = tag, h.step = step, h.epoch = 1, h.layout = 5;
    h.bytes = all < 0 ? x.bytes() : all;
    h.codec = h.dtype = uint8_t(x.dtype());
    h.piece = piece, h.pieces = pieces;
    out->add(h, x);
  }
  // What leaves, as seen on the way.
  std::string stream() {
    std::string all;
    do {
      CHECK(out->write(near));
      char some[65536];
      for (ssize_t n; (n = recv(far.get(), some, sizeof some, MSG_DONTWAIT)) > 0;)
        all.append(some, size_t(n));
    } while (!out->idle());
    return all;
  }
  // Gives the receiver these bytes, and then the end of the connection. False: it has refused them.
  bool receive(const std::string& bytes) {
    size_t at = 0;
    for (bool open = true; open;) {
      const ssize_t n = send(near.get(), bytes.data() + at, bytes.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
      at += size_t(std::max<ssize_t>(n, 0));
      if (at == bytes.size()) shutdown(near.get(), SHUT_WR);
      open = in->read(far);
    }
    return in->why.empty();
  }
  std::optional<Message> take(int64_t step) { return box.poll({0, 1, 7, step}); }

  Mailbox box;
  std::unique_ptr<Outflow> out;
  std::unique_ptr<Inflow> in;
  Fd near, far;
};

Tensor numbers(int64_t n, float first = 0) {
  Tensor x({n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = first + float(i);
  return x;
}
bool same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), size_t(a.bytes())) == 0);
}

// Three messages, the second in two pieces; returns where each frame of the stream begins.
std::vector<size_t> add_three(Wire& w) {
  const int64_t piece = kPieceBytes / 4;
  const Tensor large = numbers(piece + 100);
  w.add(0, numbers(3));
  w.add(1, large.view({piece}, 0), 0, 2, large.bytes());
  w.add(1, large.view({100}, piece), 1, 2, large.bytes());
  w.add(2, numbers(2, 50));
  const size_t first = kSealedHeader + 12 + kTagBytes,
               second = first + kSealedHeader + size_t(kPieceBytes) + kTagBytes;
  return {0, first, second, second + kSealedHeader + 400 + kTagBytes};
}

TEST(SealedStream, BringsMessagesOfAllSizesInOrder) {
  for (const bool hides : {true, false}) {
    Wire w(hides);
    add_three(w);
    w.add(3, Tensor({0}));
    EXPECT_TRUE(w.receive(w.stream()));
    EXPECT_TRUE(same(w.take(0)->payload, numbers(3)));
    EXPECT_TRUE(same(w.take(1)->payload, numbers(kPieceBytes / 4 + 100)));
    EXPECT_TRUE(same(w.take(2)->payload, numbers(2, 50)));
    EXPECT_EQ(w.take(3)->payload.size(), 0);
    EXPECT_EQ(w.box.refusals().counts().sum(), 0);
  }
}

TEST(SealedStream, ShowsNothingUnlessItIsToldTo) {
  const std::string secret = "a pattern put into x";
  for (const bool hides : {true, false}) {
    Wire w(hides);
    w.add(0, Tensor::of<uint8_t>({int64_t(secret.size())}, {secret.begin(), secret.end()}));
    const std::string seen = w.stream();
    EXPECT_EQ(seen.find(secret) == std::string::npos, hides);
    EXPECT_EQ(seen.find("SKEN") == std::string::npos, hides) << "headers, too";
  }
}

TEST(SealedStream, EndsAtAFlippedBitAndBringsNothingOfIt) {
  for (const bool hides : {true, false})
    for (const size_t frame : {0, 1, 2, 3})
      for (const size_t offset : {0, 40, 70, 85, 100}) {  // header, its tag, payload, its tag
        Wire w(hides);
        const std::vector<size_t> begins = add_three(w);
        std::string s = w.stream();
        char& changed = s.at(std::min(begins[frame] + offset, s.size() - 1));
        changed = char(changed ^ 16);
        EXPECT_FALSE(w.receive(s));
        EXPECT_TRUE(w.in->forged);
        EXPECT_EQ(w.box.refusals().forged, 1);
        EXPECT_EQ(bool(w.take(0)), frame > 0);
        EXPECT_EQ(bool(w.take(1)), frame > 2);
        EXPECT_FALSE(w.take(2)) << frame << ' ' << offset;
      }
}

// Headers alone: their sender announces what it never sends.
TEST(SealedStream, TakesNoMemoryOnTheWordOfAHeader) {
  for (const Kind k : {Kind::kRefusal, Kind::kGoodbye, Kind::kGivenUp, Kind(99), Kind::kData}) {
    Wire w;
    Header h;
    h.kind = k, h.from = 1, h.epoch = 1, h.bytes = int64_t(1) << 50;
    h.codec = h.dtype = uint8_t(kU8);
    w.out->add(h, Tensor({0}, kU8));
    EXPECT_FALSE(w.receive(w.stream())) << int(k);
    if (k == Kind::kData)
      EXPECT_THROW(w.box.check({0, 1, 7, 0}), Disagreement);
    else
      EXPECT_EQ(w.box.refusals().messages, 1) << int(k);
  }
}

TEST(SealedStream, RefusesRepetitionsGapsAndAnotherOrder) {
  const auto forged =
      [](const std::function<std::string(const std::string&, const std::vector<size_t>&)>& touch) {
        Wire w;
        const std::vector<size_t> begins = add_three(w);
        EXPECT_FALSE(w.receive(touch(w.stream(), begins)));
        return w.box.refusals().forged.load();
      };
  EXPECT_EQ(forged([](auto& s, auto& b) { return s.substr(0, b[1]) + s; }), 1) << "a message twice";
  EXPECT_EQ(forged([](auto& s, auto& b) { return s.substr(b[1]); }), 1) << "one left out";
  EXPECT_EQ(forged([](auto& s, auto& b) {
              return s.substr(0, b[1]) + s.substr(b[3]) + s.substr(b[1], b[3] - b[1]);
            }),
            1)
      << "two swapped";
  EXPECT_EQ(forged([](auto& s, auto&) { return s + s; }), 1) << "all of it again";
}

TEST(SealedStream, CountsWhatBreaksOffInAMessage) {
  for (const size_t short_of : {1, 17, 60, 100}) {
    Wire w;
    add_three(w);
    const std::string s = w.stream();
    EXPECT_FALSE(w.receive(s.substr(0, s.size() - short_of)));
    EXPECT_EQ(w.box.refusals().truncated, 1) << short_of;
    EXPECT_EQ(w.box.refusals().forged, 0);
    EXPECT_TRUE(w.take(1));
    EXPECT_FALSE(w.take(2));
  }
}

// A header that announces a thousand gigabytes, from a sender without the key.
TEST(SealedStream, AllocatesNothingOnAStrangersWord) {
  Wire w, stranger;
  stranger.add(0, numbers(4), 0, 1 << 20, int64_t(1) << 40);
  EXPECT_FALSE(w.receive(stranger.stream()));
  EXPECT_EQ(w.box.refusals().forged, 1);
  EXPECT_EQ(w.box.arrivals(), 0);
}

// Between two rounds it has to be asked again, because the next one may have to wait.
TEST(SealedStream, IsWrittenNoFurtherThanToTheNextRound) {
  Wire w;
  constexpr Tag kOfRounds = kRounds | 7;
  w.add(0, numbers(4));
  for (int64_t round : {3, 3, 4}) w.add(round, numbers(4), 0, 1, -1, kOfRounds);
  const int64_t each = int64_t(kSealedHeader) + 4 * int64_t(sizeof(float)) + int64_t(kTagBytes);
  EXPECT_EQ(w.out->round(), std::nullopt);
  ASSERT_TRUE(w.out->write(w.near));
  EXPECT_EQ(w.out->round(), 3);
  EXPECT_EQ(w.out->written(), each);
  ASSERT_TRUE(w.out->write(w.near));
  EXPECT_EQ(w.out->round(), 4);
  EXPECT_EQ(w.out->written(), 3 * each);
  ASSERT_TRUE(w.out->write(w.near));
  EXPECT_TRUE(w.out->idle());
  EXPECT_EQ(w.out->round(), std::nullopt);
}

TEST(SealedStream, WaitsForRoomInTheMailbox) {
  Wire w(true, 100);
  w.add(0, numbers(20)), w.add(1, numbers(20));
  ASSERT_TRUE(w.out->write(w.near));
  while (w.box.arrivals() < 1 || !w.in->stalled()) ASSERT_TRUE(w.in->read(w.far));
  EXPECT_FALSE(w.take(1));
  EXPECT_TRUE(w.take(0));
  ASSERT_TRUE(w.in->read(w.far));
  EXPECT_TRUE(w.take(1));
}

}  // namespace
}  // namespace skein::comm
