// Who goes first on a cable: the rule, and messages of two rounds that meet at a sender and at a receiver.
#include "comm/tcp/precedence.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "comm/mailbox.h"
#include "comm/tcp/tcp_transport.h"
#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

using std::chrono::milliseconds;
const auto kNow = Clock::time_point(std::chrono::seconds(1000));

std::vector<bool> may(const std::vector<Passage>& all) { return may_move(all, kNow); }
Passage moving(int64_t round) { return {.round = round, .moved = kNow - milliseconds(1)}; }

TEST(Precedence, TheOldestRoundsMoveAndTheYoungerOnesWait) {
  EXPECT_EQ(may({moving(7), moving(5), moving(6), moving(5)}), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(may({}), std::vector<bool>{});
}

TEST(Precedence, WhatBelongsToNoRoundIsNeverHeldUpAndHoldsUpNobody) {
  EXPECT_EQ(may({Passage{}, moving(5), Passage{.moved = kNow}}), (std::vector<bool>{true, true, true}));
}

TEST(Precedence, WhatIsStoppedOrDoesNotMoveKeepsNobodyWaiting) {
  Passage stopped = moving(4), still = moving(3);
  stopped.stopped = true;
  still.moved = kNow - kPause - milliseconds(1);
  EXPECT_EQ(may({moving(6), stopped, still, moving(7)}), (std::vector<bool>{true, true, true, false}));
}

// Ranks whose connections one thread drives in turn, so that none of them is ever late.
class Cables {
 public:
  explicit Cables(int n) {
    for (Rank r = 0; r < n; ++r) hosts_.push_back(std::make_unique<Host>(r, n));
    for (Rank a = 0; a < n; ++a)
      for (Rank b = a + 1; b < n; ++b) join(a, b);
    for (const auto& h : hosts_)
      h->tcp = std::make_unique<TcpEndpoints>(std::move(h->lines), h->box, h->live, int64_t(1) << 29);
  }
  struct Sent {
    Rank from, to;
    int64_t step;
  };
  // Sends them in this order; gives the order of their arrivals.
  std::vector<int64_t> arrivals(const std::vector<Sent>& all) {
    for (const Sent& s : all) send(s);
    std::vector<int64_t> steps;
    const auto until = after(60);
    for (std::vector<bool> here(all.size()); steps.size() < all.size() && Clock::now() < until;) {
      for (const auto& h : hosts_) h->live.check(true), h->tcp->progress();
      for (size_t i = 0; i < all.size(); ++i)
        if (!here[i] && hosts_[size_t(all[i].to)]->box.poll({0, all[i].from, kTag, all[i].step}))
          here[i] = true, steps.push_back(all[i].step);
    }
    return steps;
  }

 private:
  static constexpr Tag kTag = kRounds | 1;
  struct Host {
    Host(Rank r, int n) : box(r, n), live(box, {}) {}
    Mailbox box;
    Liveness live;
    std::map<Rank, Line> lines;
    std::unique_ptr<TcpEndpoints> tcp;  // which is not started, so it has no thread
  };
  static std::pair<Fd, Fd> connection() {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {Fd(ends[0]), Fd(ends[1])};
  }
  void join(Rank a, Rank b) {
    const auto credentials = [&](Rank r) {
      return Credentials{.key = kKey, .me = r, .size = int(hosts_.size())};
    };
    const std::string salt = random_salt();
    Call call(credentials(a), b, Purpose::kMessages);
    Reply reply = *reply_to(call.hello(salt), salt, credentials(b));
    Session caller = std::move(*call.conclude(reply.words)), &called = reply.session;
    Host &one = *hosts_[size_t(a)], &other = *hosts_[size_t(b)];
    auto [near, far] = connection();
    one.lines.emplace(b, Line{std::move(near), std::move(caller.out), std::move(caller.in)});
    other.lines.emplace(a, Line{std::move(far), std::move(called.out), std::move(called.in)});
    auto [here, there] = connection();
    one.live.watch(b, std::move(here)), other.live.watch(a, std::move(there));
  }
  void send(const Sent& s) {
    static const Tensor x = ones(2 << 20);  // 8 MB, more than what kernels keep of a connection
    Header h;
    h.from = s.from, h.tag = kTag, h.step = s.step, h.epoch = 1, h.bytes = x.bytes();
    h.codec = h.dtype = uint8_t(x.dtype()), h.layout = layout_of(x.size(), x.dtype());
    h.pieces = uint32_t(h.bytes / kPieceBytes);
    for (h.piece = 0; h.piece < h.pieces; ++h.piece) {
      const Piece p = piece_of(h);
      const Tensor part = x.view({(p.end - p.begin) / 4}, p.begin / 4);
      hosts_[size_t(s.from)]->tcp->to(s.to).send(h, part, after(60));
    }
  }
  std::vector<std::unique_ptr<Host>> hosts_;
};

TEST(Precedence, OfTwoThatARankReceivesTheOlderRoundArrivesFirst) {
  EXPECT_EQ(Cables(3).arrivals({{0, 2, 5}, {1, 2, 4}}), (std::vector<int64_t>{4, 5}));
}

TEST(Precedence, OfTwoThatARankSendsTheOlderRoundArrivesFirst) {
  EXPECT_EQ(Cables(3).arrivals({{0, 1, 5}, {0, 2, 4}}), (std::vector<int64_t>{4, 5}));
}

// Each rank receives two rounds from the others at once, and sends two: all arrive.
TEST(Precedence, NobodyWaitsForever) {
  const std::vector<int64_t> got =
      Cables(3).arrivals({{0, 1, 9}, {1, 2, 8}, {2, 0, 7}, {1, 0, 6}, {2, 1, 5}, {0, 2, 4}});
  EXPECT_EQ(got.size(), 6u);
}

}  // namespace
}  // namespace skein::comm
