// Rehearses gradients of blank images, and compares speeds.
#include "apps/train/dealing.h"

#include <algorithm>
#include <utility>

#include "apps/base/together.h"
#include "apps/setup/memory_advice.h"
#include "comm/membership/council.h"
#include "data/dealing.h"
#include "engine/device/memory.h"
#include "engine/vectors/vec.h"

namespace skein::apps {
namespace {

constexpr int kWarmUps = 3, kSteps = 20, kFewest = 3;
constexpr double kPatience = 30;  // seconds after which fewer steps have to do
constexpr double kDrift = 1.1;    // the change of a ratio of speeds at which the batch is dealt again

// By how much the ratio of any two speeds has changed.
double drift(const std::vector<double>& before, const std::vector<double>& now) {
  double low = now[0] / before[0], high = low;
  for (size_t r = 0; r < now.size(); ++r) {
    low = std::min(low, now[r] / before[r]);
    high = std::max(high, now[r] / before[r]);
  }
  return high / low;
}

}  // namespace

Dealing::Dealing(Run& run, Batches& batches, Learning& learning, WorkerEvents& workers)
    : run_(run),
      batches_(batches),
      learning_(learning),
      workers_(workers),
      on_(run.config.batch_size.automatic && run.setup.place.world > 1) {}

void Dealing::begin() {
  const data::Portions& p = *run_.setup.portions;
  dealt_by_.clear();  // an earlier attempt may have begun
  if (!p.shards().empty() || run_.comm().size() != run_.setup.place.world) return;
  if (on_ && run_.config.batch_size.shares.empty()) return measure_all();
  for (const int64_t share : p.shares()) dealt_by_.push_back(double(share));
  const comm::Council* const council = run_.setup.place.council;
  const bool changed = council && council->now().epoch > 1;
  if (on_ || !p.even())
    workers_.note_shares(p.shares(), {}, changed ? "workers have changed" : on_ ? "as before" : "given");
}

// The passes of a step of so many images; in a simulated world they take the time that they take there.
void Dealing::rehearse(int64_t rows) {
  const MemoryFor what("a share of the global batch");
  const Tensor statistics = learning_.flat.buffers ? learning_.flat.buffers.clone() : Tensor();
  const int64_t passes = std::min(run_.config.accumulate, rows);
  for (int64_t p = 0; p < passes; ++p) try_step(run_.setup, rows * (p + 1) / passes - rows * p / passes);
  if (statistics) copy(learning_.flat.buffers, statistics);
  Pacing(run_).alone(rows);
}

bool Dealing::fits(int64_t rows) try {
  rehearse(rows);
  return true;
} catch (const OutOfMemory&) {
  release_cached(run_.setup.device);
  return false;
}

// The largest of rows, rows / 2, ... that memory holds; 0 if it holds not even one.
int64_t Dealing::what_fits(int64_t rows) {
  while (rows > 0 && !fits(rows)) rows /= 2;
  return rows;
}

double Dealing::measure(int64_t rows) {
  for (int i = 0; i < kWarmUps; ++i) rehearse(rows);
  std::vector<double> each;
  for (const double began = clock_seconds(); each.size() < kSteps;) {
    const double from = clock_seconds();
    if (each.size() >= kFewest && from - began > kPatience) break;
    rehearse(rows);
    each.push_back(clock_seconds() - from);
  }
  std::nth_element(each.begin(), each.begin() + int64_t(each.size() / 2), each.end());
  return double(rows) / std::max(each[each.size() / 2], 1e-12);
}

// What this takes is no time of training.
void Dealing::measure_all() {
  comm::Communicator& comm = run_.comm();
  const Seconds before = run_.costs.seconds;
  const int64_t even = std::max<int64_t>(1, run_.setup.portions->share_of(run_.setup.place.rank));
  int64_t rows = 0;
  double speed = 0;
  together(comm, [&] { rows = what_fits(even); });  // all begin to measure at the same time
  together(comm, [&] {
    if (rows == 0)
      throw Error(
          "--batch-size auto: not even one image fits into memory; take a smaller --image-size or --model");
    speed = measure(rows);
  });
  const std::vector<int64_t> shares = settle(speed, rows, rows < even ? even - 1 : run_.setup.global_batch);
  run_.costs.seconds = before;
  share_out(shares, "measured");
}

// Deals until each worker has tried what it is dealt. `tried`: what has fitted; `most`: what may fit.
std::vector<int64_t> Dealing::settle(double speed, int64_t tried, int64_t most) {
  comm::Communicator& comm = run_.comm();
  for (;;) {
    dealt_by_.clear();
    std::vector<int64_t> room, shares;
    for (const auto& one : comm::gather_numbers(comm, {speed, double(most)}))
      dealt_by_.push_back(one[0]), room.push_back(int64_t(one[1]));
    together(comm, [&] { shares = data::deal_by_speed(run_.setup.global_batch, dealt_by_, room); });
    const int64_t mine = shares[size_t(run_.setup.place.rank)];
    bool well = true;
    together(comm, [&] { well = mine <= tried || fits(mine); });
    if (well)
      tried = std::max(tried, mine);
    else
      most = tried + (mine - tried) / 2;
    bool all = true;
    for (const auto& one : comm::gather_numbers(comm, {double(well)})) all = all && one[0] != 0;
    if (all) return shares;
  }
}

double Dealing::speed() const { return on_ ? learning_.gradient.speed().images_per_second() : 0; }

void Dealing::hear(const std::vector<double>& speeds) {
  const bool known = std::all_of(speeds.begin(), speeds.end(), [](double s) { return s > 0; });
  if (!on_ || !known || speeds.size() != dealt_by_.size() || drift(dealt_by_, speeds) <= kDrift) return;
  dealt_by_ = speeds;
  share_out(data::deal_by_speed(run_.setup.global_batch, speeds), "speeds have changed");
}

Stopping::Beside Dealing::beside() {
  return {[this] { return speed(); }, [this](const std::vector<double>& all) { hear(all); }};
}

void Dealing::ask_all() {
  told_.clear();
  if (!on_ || !run_.asynchronous) return;
  for (const auto& one : comm::gather_numbers(run_.comm(), {speed()})) told_.push_back(one[0]);
}

void Dealing::act() { hear(std::exchange(told_, {})); }

void Dealing::share_out(const std::vector<int64_t>& shares, const std::string& why) {
  data::Portions& p = *run_.setup.portions;
  workers_.note_shares(shares, dealt_by_, why);
  if (shares == p.shares()) return;
  const bool open = batches_.is_open();
  batches_.close();
  p.share_out(shares);
  learning_.weigh();
  learning_.gradient.begin_again();
  if (open) batches_.open();
}

}  // namespace skein::apps
