// FailureDetector: what two routes to a member show.
#include "comm/membership/failure_detector.h"

#include <gtest/gtest.h>

#include "comm/mailbox.h"
#include "comm/transports/local_transport.h"

namespace skein::comm {
namespace {

using Finding = FailureDetector::Finding;

// Member 100 looks at 101, which it reaches by one route for each epoch in which they have connected.
struct Lookout {
  Lookout() { connect(); }
  void connect() {
    const auto epoch = uint32_t(worlds.size() + 1);
    worlds.push_back(local_world(2));
    routes.push_back({worlds.back()[0].get(),
                      {.epoch = epoch, .members = {{100, "a"}, {101, text("card of epoch ", epoch)}}}});
  }
  Mailbox& box(size_t route) { return worlds[route][0]->mailbox(); }
  Finding find() {
    return detector.find(101, routes, [this](const View& v) { return v.epoch < epoch; });
  }

  std::vector<std::vector<std::unique_ptr<Transport>>> worlds;
  std::vector<Route> routes;
  std::vector<std::string> asked;  // cards
  bool gone = false;
  uint32_t epoch = 1;
  FailureDetector detector{[this](const std::string& card) { return asked.push_back(card), gone; }};
};

TEST(FailureDetector, AMemberIsThereWhileOneRouteLeadsToIt) {
  Lookout l;
  EXPECT_EQ(l.find(), Finding::kThere);
  l.box(0).lose(1, "not heard of for 10 s");
  EXPECT_EQ(l.find(), Finding::kLost);
  l.connect();
  EXPECT_EQ(l.find(), Finding::kThere);
  l.box(1).lose(1, "not heard of for 10 s");
  EXPECT_EQ(l.find(), Finding::kLost);
  EXPECT_TRUE(l.asked.empty());  // it is silent, and nothing says that it has ended
}

TEST(FailureDetector, OneThatHangsUpIsGoneOnlyIfItsProcessHasEnded) {
  Lookout l;
  l.box(0).lose(1, "its process has ended", true);
  EXPECT_EQ(l.find(), Finding::kLost);
  EXPECT_EQ(l.asked, std::vector<std::string>{"card of epoch 1"});
  l.gone = true;
  while (l.find() != Finding::kGone) nap(std::chrono::milliseconds(1));
}

TEST(FailureDetector, OneThatLivesOnIsAskedLessAndLessOften) {
  Lookout l;
  l.box(0).lose(1, "its process has ended", true);
  for (const auto end = after(0.3); Clock::now() < end; nap(std::chrono::milliseconds(1)))
    EXPECT_EQ(l.find(), Finding::kLost);
  EXPECT_LE(l.asked.size(), 8u);  // after 0, 2, 6, 14, 30, 62, 126, 254 ms
}

TEST(FailureDetector, ALetterThatComesAfterTheLossIsASignOfLife) {
  Lookout l;
  l.detector.heard(101);
  l.box(0).lose(1, "not heard of for 10 s");
  EXPECT_EQ(l.find(), Finding::kLost);  // that letter came before
  nap(std::chrono::milliseconds(2));
  l.detector.heard(101);
  EXPECT_EQ(l.find(), Finding::kWrites);
}

TEST(FailureDetector, AGoodbyeInAnEpochThatIsOverIsNoLoss) {
  Lookout l;
  l.box(0).leave(1);
  EXPECT_EQ(l.find(), Finding::kGone);
  l.epoch = 2;
  EXPECT_EQ(l.find(), Finding::kThere);
}

}  // namespace
}  // namespace skein::comm
