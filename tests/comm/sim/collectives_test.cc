// Collectives as a whole against the same ones message by message: bits and times; and worlds
// of many members.
#include <cmath>

#include "comm/sim/site.h"
#include "tests/support/sim.h"
#include "tests/support/world.h"

namespace skein::comm::sim {
namespace {

struct Collective {
  const char* name;
  std::function<void(Communicator&)> act;
};

// When each member has done it, in seconds since they met, if rank r comes after late(r).
std::vector<double> times_of(const SitePlan& p, const std::function<double(Rank)>& late, const Collective& c,
                             bool whole, const Weather& weather = {}) {
  World world({.weather = weather,
               .keeps_log = false,
               .site = p,
               .fibers = true,
               .most_by_messages = whole ? 1 : 64});
  std::vector<double> times(size_t(p.workers()));
  populate(world, p.workers(),
           [&](Communicator& comm) {
             comm.barrier();
             spend(100 + late(comm.rank()) - world.now());
             c.act(comm);
             times[size_t(comm.rank())] = world.now() - 100;
             spend(1000 - world.now());
           },
           {.deadline = kForever});
  world.run();
  return times;
}

SitePlan sites(int hosts, int each, int racks) {
  SitePlan p;
  if (racks > 1) p.switches.push_back({.name = "core", .latency = 1e-5});
  for (int r = 0; r < racks && racks > 1; ++r)
    p.switches.push_back({.name = text("rack", r), .above = 0, .up = 4e7, .latency = 1e-5});
  for (int h = 0; h < hosts; ++h)
    p.hosts.push_back({.name = text("h", h),
                       .at = racks > 1 ? 1 + h % racks : -1,
                       .workers = each,
                       .rate = 1e8,
                       .latency = 5e-5});
  if (hosts == 7) p.links.push_back({1, 4, 2e7, 1e-4});
  if (hosts * each < 20)
    p.message = 2e-6;  // for each message the rates of thousands of flows are computed again
  return p;
}

Tensor vector_of(Communicator& c, int64_t n) {
  Tensor x({n});
  fill(x, float(c.rank()));
  return x;
}

// The sum of what all have, modulo 256.
Tensor combine(Communicator& c, const Tensor& x) {
  return c.combine(x, [](const std::vector<Tensor>& all) {
    const Tensor sum = all[0].clone();
    for (size_t r = 1; r < all.size(); ++r)
      for (int64_t i = 0; i < sum.size(); ++i) sum.data<uint8_t>()[i] += all[r].data<uint8_t>()[i];
    return sum;
  });
}

// A gradient that is summed while backward hands it out.
void sum_slices(Communicator& c) {
  std::vector<Pending> sums;
  for (int s = 0; s < 5; ++s) {
    sums.push_back(c.all_reduce(vector_of(c, 1 << 16)));
    spend(1e-3);
  }
  for (Pending& p : sums) p.wait();
}

const std::vector<Collective> kCases = {
    {"sums in slices", sum_slices},
    {"sum of many", [](Communicator& c) { c.all_reduce(vector_of(c, 1 << 18)).wait(); }},
    {"sum of few", [](Communicator& c) { c.all_reduce(vector_of(c, 1000)).wait(); }},
    {"all-gather", [](Communicator& c) { combine(c, Tensor({50000}, kU8)); }},
    {"broadcast of many", [](Communicator& c) { c.broadcast(vector_of(c, 1 << 18), 3); }},
    {"broadcast of few", [](Communicator& c) { c.broadcast(vector_of(c, 100), 3); }},
    {"gather", [](Communicator& c) { c.gather(vector_of(c, 10000), 1); }},
    {"barrier", [](Communicator& c) { c.barrier(); }},
};

double latest(const std::vector<double>& all) { return *std::max_element(all.begin(), all.end()); }

// The end of all, as a multiple of that by messages, for any order of arrival.
TEST(CollectiveTimes, AreThoseOfTheirMessages) {
  for (const auto& [hosts, each, racks] :
       std::vector<std::array<int, 3>>{{4, 1, 1}, {7, 1, 1}, {64, 1, 1}, {6, 3, 1}, {8, 2, 4}})
    for (const double spread : {0.0, 0.01})
      for (const Collective& c : kCases) {
        const SitePlan p = sites(hosts, each, racks);
        const auto late = [&](Rank r) { return spread * std::fmod(0.618 * r, 1); };
        const double by_messages = latest(times_of(p, late, c, false)),
                     whole = latest(times_of(p, late, c, true));
        const double waited = by_messages - spread * 0.95;
        RecordProperty(text(c.name, ' ', hosts, 'x', each, '/', racks, " spread ", spread),
                       text(by_messages, " s, ", 100 * (whole / by_messages - 1), " %"));
        EXPECT_NEAR(whole, by_messages, std::max(0.15 * waited, 2e-4))
            << c.name << ", " << hosts << " hosts of " << each << ", " << racks << " racks, spread "
            << spread;
      }
}

// bf16 rounds what travels, and not what an owner has itself.
TEST(Collectives, GiveTheBitsOfTheirMessages) {
  for (const DType wire : {kF32, kBF16})
    for (const int n : {5, 16})
      for (const int64_t size : {7, 3000}) {
        std::vector<std::vector<float>> bits[2];
        for (const bool whole : {false, true}) {
          World world({.keeps_log = false, .fibers = true, .most_by_messages = whole ? 1 : 64});
          bits[whole].resize(size_t(n));
          populate(world, n,
                   [&, whole = whole](Communicator& c) {
                     Tensor x({size});
                     for (int64_t i = 0; i < size; ++i)
                       x.data<float>()[i] = std::sin(float(i + 31 * c.rank()));
                     const Tensor y = x.clone();
                     c.all_reduce(x).wait();
                     c.broadcast(y, 2);
                     std::vector<float>& all = bits[whole][size_t(c.rank())];
                     for (const Tensor& t : {x, y})
                       all.insert(all.end(), t.data<float>(), t.data<float>() + size);
                     const Tensor codes = Tensor::of<uint8_t>({2}, {uint8_t(c.rank()), 200});
                     for (int i = 0; i < 2; ++i) all.push_back(combine(c, codes).data<uint8_t>()[i]);
                     for (const Tensor& t : c.gather(x, 1))
                       all.insert(all.end(), t.data<float>(), t.data<float>() + size);
                   },
                   {.deadline = kForever, .wire = wire});
          world.run();
        }
        EXPECT_EQ(bits[0], bits[1]) << wire << ' ' << n << ' ' << size;
      }
}

TEST(Collectives, OfManyAreOneEventEach) {
  constexpr int kMany = 1000;
  World world({.keeps_log = false, .site = sites(kMany, 1, 1), .fibers = true});
  uint64_t before = 0, after = 0;
  populate(world, kMany,
           [&](Communicator& c) {
             c.barrier();
             spend(10 - world.now());
             if (c.rank() == 0) before = world.events();
             const Tensor x = vector_of(c, 10);
             c.all_reduce(x).wait();
             EXPECT_EQ(x.data<float>()[9], kMany * (kMany - 1) / 2);
             if (c.rank() == 0) after = world.events();
             spend(20 - world.now());
           },
           {.deadline = kForever});
  world.run();
  EXPECT_LE(after - before, 5 * kMany);
}

TEST(Collectives, OfManyNameAMemberThatIsLostOrCallsAnother) {
  const auto ends = [](const std::function<void(Communicator&)>& f, bool kills) {
    World world({.keeps_log = false, .site = sites(100, 1, 1), .fibers = true});
    std::string why;
    populate(world, 100, [&](Communicator& c) {
      try {
        f(c);
      } catch (const Error& e) { why = e.what(); }
    });
    if (kills) world.at(5, [&] { world.kill(7); });
    world.run();
    return why;
  };
  const std::string lost = ends([](Communicator& c) { c.rank() == 7 ? spend(10) : c.barrier(); }, true);
  EXPECT_NE(lost.find("rank 7 is lost"), std::string::npos) << lost;
  const std::string other =
      ends([](Communicator& c) { c.rank() == 7 ? c.barrier() : c.broadcast(number(1), 0); }, false);
  EXPECT_NE(other.find("disagree about collective"), std::string::npos) << other;
}

// Goodbyes go only to those who wait, before or after.
TEST(Collectives, WhoWaitsForOneOfManyThatHasLeftHearsIt) {
  for (const double wait : {0.0, 50.0}) {
    World world({.keeps_log = false, .site = sites(100, 1, 1), .fibers = true});
    int heard = 0;
    populate(world, 100,
             [&](Communicator& c) {
               if (c.rank() == 3) {
                 spend(10);
                 return c.push(4, 1, 0, 1, number(5));
               }
               spend(wait);
               if (c.rank() == 4) { EXPECT_EQ(c.take(3, 1, 0).payload.item(), 5); }
               try {
                 c.take(3, 1, 1);
               } catch (const PeerLost&) { ++heard; }
             },
             {.deadline = kForever});
    world.run();
    EXPECT_EQ(heard, 99);
  }
}

// ---- fibers
// -------------------------------------------------------------------------------------------------

std::string log_of(bool fibers) {
  World world({.weather = {.seed = 3, .latency = 1e-3, .jitter = 0.02, .loss = 0.1, .duplication = 0.1},
               .site = sites(6, 1, 2),
               .fibers = fibers});
  populate(world, 6, [&](Communicator& c) {
    c.on(5, [&](const Message& m) { c.twin()->push(m.from, 6, m.step, 1, m.payload); });
    for (int64_t k = 0; k < 20; ++k) {
      c.push((c.rank() + 1) % 6, 5, k, 1, number(float(k)));
      c.take((c.rank() + 1) % 6, 6, k);
      c.mean(vector_of(c, 500)).wait();
    }
    try {
      try {
        throw Error("outer");
      } catch (const Error&) {  // others throw and catch while this one is handled
        spend(0.1 * c.rank());
        try {
          c.take_within(0.01, 0, 9, 0);
          throw Error("inner");
        } catch (const Error& e) {
          spend(0.03);
          EXPECT_STREQ(e.what(), "inner");
        }
        throw;
      }
    } catch (const Error& e) { EXPECT_STREQ(e.what(), "outer"); }
    c.barrier();
  });
  world.at(3, [&] { world.hang(2); });
  world.at(4, [&] { world.wake(2); });
  world.run();
  return world.log();
}

TEST(Fibers, LiveTheLivesOfThreads) {
  const std::string threads = log_of(false);
  EXPECT_GT(threads.size(), 10000u);
  EXPECT_EQ(threads, log_of(true));
}

TEST(Fibers, AreUnwoundWhereTheirWorkerIsKilled) {
  World world({.keeps_log = false, .fibers = true});
  int destroyed = 0;
  struct Counted {
    int& n;
    ~Counted() { ++n; }
  };
  for (Id id : ids(3))
    world.begin(id, [&, id] {
      const Counted c{destroyed};
      Thread t([&] {
        const Counted d{destroyed};
        spend(100);
      });
      try {
        spend(id == 1 ? 1e6 : 50);
      } catch (...) {
        t.join();
        throw;
      }
      t.join();
    });
  world.at(20, [&] { world.kill(1); });
  world.run();
  EXPECT_EQ(destroyed, 6);
  EXPECT_NEAR(world.now(), 100, 1e-3);
}

}  // namespace
}  // namespace skein::comm::sim
