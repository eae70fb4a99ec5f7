// Turns at a center: who dies, stalls or comes late loses its turn, and the others never wait.
#include "optim/center/turns.h"

#include "tests/support/processes.h"
#include "tests/support/roles.h"
#include "tests/support/sim.h"
#include "tests/support/trainee.h"

namespace skein {
namespace {

using namespace trainee;
using optim::Turns;

// Takes what is given while the turn is held, as gem does: theta <- theta + u.
void pull_then_add(optim::Turn& t) {
  t.give(t.theta, t.version);
  axpy(t.theta, 1.f, t.take().payload);
}

// Adds what comes with the request, and answers, as downpour does.
void add_then_answer(optim::Turn& t) {
  axpy(t.theta, 1.f, t.take().payload);
  t.give(t.theta, t.version + 1);
}

// A worker of several whose center starts at zero.
struct Seat {
  Seat(comm::Communicator& c, const optim::Center::Column& column = pull_then_add, int64_t size = 2)
      : x(Tensor::zeros({size})), turns({}, c.size()), worker{x, g, b, *rule, 0.f, c, 1, {}} {
    turns.start(worker, c, column);
  }
  void add(float v) {
    turns.open();
    turns.commit(Tensor::of<float>({2}, {v, v}));
  }
  float center() {
    turns.settle(worker);
    const Tensor y(x.shape());
    turns.write_model(worker, y);
    return y.data<float>()[0];
  }
  const Tensor x;
  Tensor g = Tensor::zeros(x.shape()), b;
  std::unique_ptr<optim::Rule> rule = optim::sgd(x, {});
  Turns turns;
  optim::Worker worker;
};

// f(rank, communicator, say goodbye) on three threads with leases of 0.4 s.
using Part = std::function<void(int, comm::Communicator&)>;
void with_three(const Part& f, double lease = 0.4) {
  auto world = comm::local_world(3);
  comm::on_threads(3, [&](int r) {
    {
      comm::Communicator c(*world[size_t(r)], {.deadline = lease, .key = comm::Secret("k")});
      f(r, c);
    }
    world[size_t(r)].reset();
  });
}

std::atomic<int> arrived{0};
void wait_for(int n) {
  for (++arrived; arrived < n;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// After two have worked on: worker 0 pulls the center by itself, for a barrier would want the third.
float pulled_by(Seat& s) {
  const float v = s.turns.open().payload.data<float>()[0];
  s.turns.commit(Tensor::zeros({2}));
  return v;
}

TEST(Turn, WhoDiesInItsTurnLosesItAndNothingElse) {
  arrived = 0;
  with_three(
      [](int r, comm::Communicator& c) {
        Seat s(c);
        if (r == 2) {
          s.add(100);
          s.turns.open();
          return;  // and is gone
        }
        for (int i = 0; i < 20; ++i) s.add(1);
        wait_for(2);
        if (r == 0) {
          EXPECT_EQ(pulled_by(s), 140);
          EXPECT_EQ(s.turns.leases_lost(), 1);
        }
        wait_for(4);
      },
      20);
}

TEST(Turn, WhoStallsInItsTurnIsSkippedAndItsLateCommitIsDropped) {
  arrived = 0;
  std::atomic<bool> opened{false};
  with_three([&](int r, comm::Communicator& c) {
    Seat s(c);
    if (r == 2) {
      s.turns.open();
      opened = true;
      wait_for(3);                                         // the others have gone on
      s.turns.commit(Tensor::of<float>({2}, {100, 100}));  // too late
      s.add(1000);                                         // the next one counts
      wait_for(6);
      return;
    }
    while (!opened) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 5; ++i) s.add(1);
    wait_for(3);
    wait_for(6);
    if (r == 0) {
      EXPECT_EQ(pulled_by(s), 1010);
      EXPECT_EQ(s.turns.leases_lost(), 1);
    }
    wait_for(8);
  });
}

TEST(Turn, WhoDiesWhileItWaitsIsPassedOver) {
  arrived = 0;
  comm::Invitation invitation;
  with_three(
      [&](int r, comm::Communicator& c) {
        Seat s(c);
        if (r == 0) invitation = s.turns.invitation();
        wait_for(3);
        if (r == 2) {
          comm::InboxClient(invitation, comm::Secret("k"), 2).ask(optim::center::kTurn);
          return;
        }
        for (int i = 0; i < 10; ++i) s.add(1);
        wait_for(5);
        if (r == 0) { EXPECT_EQ(pulled_by(s), 20); }
        wait_for(7);
      },
      20);
}

// The first of two pieces arrives; then its sender dies.
TEST(Turn, AHalfReceivedCommitIsDiscardedWhole) {
  arrived = 0;
  auto world = comm::local_world(3);
  comm::Mailbox& box = world[0]->mailbox();
  comm::on_threads(3, [&](int r) {
    {
      comm::Communicator c(*world[size_t(r)], {.deadline = 20});
      Seat s(c);
      if (r == 2) {
        const comm::Message m = s.turns.open();
        comm::Header h = m;
        h.from = 2, h.tag = optim::center::kToCenter;
        h.bytes = comm::kPieceBytes + 8, h.pieces = 2, h.piece = 0;
        const Tensor place = box.landing(h, allocator(kCpu));
        ASSERT_TRUE(place);
        fill(place, 7.f);
        box.landed(h, place);
      } else {
        for (int i = 0; i < 10; ++i) s.add(1);
        wait_for(2);
        if (r == 0) {
          EXPECT_EQ(pulled_by(s), 20);
          EXPECT_EQ(s.turns.leases_lost(), 1);
        }
        wait_for(4);
      }
    }
    world[size_t(r)].reset();
  });
}

// Sixteen at once take each other the rate of the server's link: what one gives comes after the lease.
TEST(Turn, IsPutOffWhileItsMessageIsOnASlowLink) {
  constexpr int kWorkers = 16, kRounds = 3;
  comm::sim::SitePlan plan;
  for (int h = 0; h < kWorkers; ++h)
    plan.hosts.push_back({.name = text("h", h), .rate = 464, .latency = 1e-3});
  comm::sim::World world({.time_up = 10000, .keeps_log = false, .site = plan});
  int finished = 0;
  comm::sim::populate(world, kWorkers,
                      [&](comm::Communicator& c) {
                        Seat s(c, add_then_answer, 100);  // which takes a second on a link of its own
                        c.set_deadline(comm::kForever);   // the others are not all done at once
                        const Tensor ones(s.x.shape());
                        fill(ones, 1.f);
                        for (int i = 0; i < kRounds; ++i) s.turns.exchange(ones);
                        EXPECT_EQ(s.center(), kWorkers * kRounds);
                        if (c.rank() == 0) { EXPECT_EQ(s.turns.leases_lost(), 0); }
                        ++finished;
                      },
                      {.deadline = 12, .key = comm::Secret("k")});
  world.run();
  EXPECT_EQ(finished, kWorkers);
}

TEST(Turn, ThatIsLostForBeingLateIsSaidOnce) {
  comm::sim::World world({.keeps_log = false});
  testing::internal::CaptureStderr();
  comm::sim::populate(world, 2,
                      [&](comm::Communicator& c) {
                        Seat s(c);
                        c.set_deadline(comm::kForever);
                        for (int i = 0; i < 3; ++i) {
                          s.turns.open();
                          if (c.rank() == 1) comm::nap(std::chrono::seconds(2));
                          s.turns.commit(Tensor::of<float>({2}, {1, 1}));
                        }
                        EXPECT_EQ(s.center(), 3) << "all of worker 0";
                        if (c.rank() == 0) { EXPECT_EQ(s.turns.leases_lost(), 3); }
                      },
                      {.deadline = 1, .key = comm::Secret("k")});
  world.run();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("warning: worker 1 had the center for longer than the deadline, 1 s"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// Also what is kept with it, the momentum of its rule and the sum of commits.
TEST(Turn, ACenterThatIsPulledAndPutBackIsTheSameBitsOnANarrowWire) {
  std::vector<std::vector<float>> theta(2);
  in_local_world(2,
                 [&](comm::Communicator& c) {
                   Trainee t({.noise = 1, .start_spread = 0.3f}, "downpour",
                             options({{"server-rule", "delayed-nesterov"}}), c);
                   for (int64_t k = 0; k < 5; ++k) t.step(k);
                   t.strategy->settle(t.worker);
                   const Tensor y(t.x.shape());
                   t.strategy->write_model(t.worker, y);
                   theta[size_t(c.rank())] = values(y);
                   optim::Snapshot before, after;
                   const auto walk = [&](Archive& a) { t.visit(a); };
                   before.take(walk), before.restore(walk);
                   t.strategy->settle(t.worker);
                   after.take(walk);
                   EXPECT_EQ(after, before) << c.rank();
                 },
                 {.deadline = 20, .wire = kBF16});
  EXPECT_EQ(theta[0], theta[1]);
  const auto rounded = [](float v) { return float(bf16(v)) == v; };
  EXPECT_FALSE(std::all_of(theta[0].begin(), theta[0].end(), rounded));
}

// What a process does that was started again without the others' knowledge.
TEST(Turn, AWorkerMayJoinAtAnyTime) {
  arrived = 0;
  comm::Invitation invitation;
  with_three([&](int r, comm::Communicator& c) {
    Seat s(c);
    if (r == 0) invitation = s.turns.invitation();
    if (r != 2) {
      for (int i = 0; i < 5; ++i) s.add(1);
      wait_for(3);
      wait_for(6);
      if (r == 0) { EXPECT_EQ(pulled_by(s), 110); }
      wait_for(8);
      return;
    }
    s.turns.open();  // its first life ends in a turn
    wait_for(3);     // the others have taken theirs
    comm::InboxClient anew(invitation, comm::Secret("k"), 2);
    const int64_t turn = anew.ask(optim::center::kTurn);
    const auto twin = c.twin(false);
    EXPECT_EQ(twin->take(0, optim::center::kFromCenter, turn).payload.data<float>()[0], 10);
    twin->push(0, optim::center::kToCenter, turn, 1, Tensor::of<float>({2}, {100, 100}));
    wait_for(6);
  });
}

TEST(Turn, AServerThatIsLostIsToldToWhoWaits) {
  auto world = comm::local_world(2);
  comm::on_threads(2, [&](int r) {
    {
      comm::Communicator c(*world[size_t(r)], {.deadline = 20});
      Seat s(c);
      const auto for_ever = [&] {
        while (true) s.add(1);
      };
      if (r == 1) { EXPECT_THROW(for_ever(), comm::PeerLost); }
    }
    world[size_t(r)].reset();
  });
}

// A center so large that only one and a half fit on the way to a worker.
void train_with_a_large_center(comm::Exchange& e, const std::string& row) {
  omp_set_num_threads(1);
  constexpr int64_t kElements = 100'000;
  comm::TransportOptions o = comm::way("shared");
  o.in_flight = kElements * int64_t(sizeof(float)) * 3 / 2;
  const auto t = comm::connect(e, o);
  comm::Communicator c(*t, comm::in_seconds(10));
  Trainee one({.size = kElements}, row, {}, c);
  for (int64_t k = 0; k < 4; ++k) one.step(k);
  one.strategy->settle(one.worker);
}
const comm::AddRole kLargeCenter("large_center", train_with_a_large_center);

TEST(Turn, NobodyKeepsACenterThatIsLent) {
  for (const char* row : {"downpour", "dynsgd", "agn", "gem"}) {
    comm::Processes p("large_center", 2, row);
    for (comm::Rank r : {0, 1}) EXPECT_EQ(p.wait(r, 20), 0) << row;
  }
}

}  // namespace
}  // namespace skein
