// An attacker on the wire between two ranks flips one bit of what they say.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "comm/join/sockets.h"
#include "tests/support/keys.h"
#include "tests/support/world.h"

namespace skein::comm {
namespace {

constexpr int64_t kLong = 50'000;  // numbers

// Passes on what is said to a port, and what is answered. When told to, it flips a bit of a long piece.
class Meddler {
 public:
  explicit Meddler(int port) : target_(port), listener_(listen_tcp("127.0.0.1", {}, port_)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Meddler() {
    stop_ = true;
    thread_.join();
  }
  int port() const { return port_; }
  std::atomic<bool> flips{false};

 private:
  struct Line {
    Fd ends[2];
  };
  void run() {
    while (!stop_) {
      std::vector<pollfd> all = {{listener_.get(), POLLIN, 0}};
      for (const Line& l : lines_)
        for (const Fd& end : l.ends) all.push_back({end.get(), POLLIN, 0});
      (void)poll(all.data(), all.size(), 10);
      for (size_t i = all.size() - 1; i > 0; --i) {
        const size_t line = (i - 1) / 2, end = (i - 1) % 2;
        if (all[i].revents && line < lines_.size() && !pass_on(lines_[line], end))
          lines_.erase(lines_.begin() + ptrdiff_t(line));
      }
      if (all[0].revents)
        lines_.push_back(
            {{Fd(accept(listener_.get(), nullptr, nullptr)), connect_tcp({"127.0.0.1"}, target_, after(5))}});
    }
  }
  // False: that end has hung up.
  bool pass_on(Line& l, size_t from) {
    std::string bytes(64 << 10, 0);
    const ssize_t n = recv(l.ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0) return true;
    bytes.resize(size_t(n));
    if (n > 10'000 && flips.exchange(false)) bytes[size_t(n) / 2] ^= 16;
    return n > 0 && write_all(l.ends[1 - from], bytes, after(5));
  }

  const int target_;
  int port_ = 0;
  Fd listener_;
  std::vector<Line> lines_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Leads rank 1, which calls at rank 0's port, to the meddler.
class Misled final : public Exchange {
 public:
  Misled(std::shared_ptr<ThreadExchange::Table> t, Rank r, std::unique_ptr<Meddler>& m)
      : e_(t, r), meddler_(m) {}
  Rank rank() const override { return e_.rank(); }
  int size() const override { return e_.size(); }
  std::vector<std::string> all_gather(const std::string& mine) override {
    const size_t end = mine.find(" 127.0.0.1");
    if (rank() != 0 || end == mine.npos) return e_.all_gather(mine);
    meddler_ = std::make_unique<Meddler>(std::stoi(mine.substr(0, end)));
    return e_.all_gather(std::to_string(meddler_->port()) + mine.substr(end));
  }

 private:
  ThreadExchange e_;
  std::unique_ptr<Meddler>& meddler_;
};

void speak(Communicator& c) {
  c.push(0, 7, 0, 1, ones(kLong), 1);
  (void)c.take(0, 8, 0, ones(1));
  c.push(0, 7, 1, 1, ones(kLong, 2), 1);
  EXPECT_THROW(c.take(0, 8, 1, ones(1)), PeerLost);
}

void hear(Communicator& c, Transport& t, Meddler& meddler) {
  EXPECT_EQ(c.take(1, 7, 0, ones(kLong)).payload.data<float>()[kLong - 1], 1);
  EXPECT_EQ(t.mailbox().refusals().counts().sum(), 0);
  meddler.flips = true;
  c.push(1, 8, 0, 1, ones(1), 1);
  EXPECT_THROW(c.take(1, 7, 1, ones(kLong)), PeerLost);
  EXPECT_FALSE(meddler.flips);
  EXPECT_EQ(t.mailbox().refusals().counts().forged, 1);
  EXPECT_EQ(t.mailbox().refusals().counts().sum(), 1);
}

TEST(Tampering, AFlippedBitIsCountedAndEndsTheConnection) {
  for (const Sealing sealing : {Sealing::kAuto, Sealing::kOff}) {
    const auto table = std::make_shared<ThreadExchange::Table>(2);
    std::unique_ptr<Meddler> meddler;
    on_threads(2, [&](Rank r) {
      Misled exchange(table, r, meddler);
      const auto t = connect(exchange, {.way = Way::kTcp, .sealing = sealing, .key = kKey, .deadline = 20});
      Communicator c(*t, {.deadline = 20});
      r == 0 ? hear(c, *t, *meddler) : speak(c);
    });
  }
}

}  // namespace
}  // namespace skein::comm
