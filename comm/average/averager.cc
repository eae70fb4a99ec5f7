// One epoch's gossips, and which shares are still to come when they break off.
#include "comm/average/averager.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "comm/average/in_place.h"
#include "comm/communicator/numbers.h"
#include "comm/communicator/patience.h"
#include "engine/vectors/mixing.h"

namespace skein::comm {
namespace {

constexpr Tag kShare = 1, kPair = 2, kWords = 3, kTable = 4, kFence = 5, kWill = 6, kPart = 8, kMeanPart = 9,
              kInPlace = 10;      // and 11
constexpr double kGlance = 0.05;  // seconds between two looks at which members are still there

void require_all(Communicator& c) {
  for (Rank r = 0; r < c.size(); ++r) c.membership().require(c.world_rank(r));
}

}  // namespace

Message await(const Circle& circle, Rank from, Tag tag, int64_t step, double patience, const Tensor& like) {
  Communicator& c = circle.comm;
  const Patience glance(c, kGlance);
  auto began = Clock::now();
  for (auto looked = began;; began += absence(looked)) {
    try {
      return c.take(from, tag, step, like);
    } catch (const Timeout&) {
      require_all(c);
      circle.require_unchanged();
      if (seconds_since(began) > patience)
        throw Timeout(c.world_rank(from),
                      text("rank ", c.transport().rank(), " waited ", patience, " s for rank ",
                           c.world_rank(from), ", tag ", tag, ", step ", step, "; every worker is alive"));
    }
  }
}

std::vector<std::vector<double>> tell(const Circle& circle, const std::vector<double>& mine, int64_t step) {
  Communicator& c = circle.comm;
  const double patience = c.options().deadline;
  std::vector<double> all = mine;
  if (c.rank() == 0) {
    for (Rank r = 1; r < c.size(); ++r) {
      const std::vector<double> words =
          numbers_of(await(circle, r, kWords, step, patience, bits_of(mine)).payload);
      all.insert(all.end(), words.begin(), words.end());
    }
    for (Rank r = 1; r < c.size(); ++r) c.push(r, kTable, step, 1, bits_of(all));
  } else {
    c.push(0, kWords, step, 1, bits_of(mine));
    const Tensor table({int64_t(mine.size()) * c.size()}, kI64);
    all = numbers_of(await(circle, 0, kTable, step, patience, table).payload);
  }
  return rows_of(all, size_t(c.size()));
}

Averager::Averager(Circle members, std::unique_ptr<Topology> graph, const Tensor& x, Averaging algorithm,
                   uint32_t epoch)
    : circle_(std::move(members)),
      graph_(std::move(graph)),
      x_(x),
      mean_({x.size()}, x.dtype(), circle_.comm.allocator()),
      algorithm_(algorithm),
      epoch_(epoch) {
  if (algorithm_ == Averaging::kAllReduce)
    before_ = x_.clone();
  else
    CHECK(graph_ && graph_->size() == circle_.comm.size(), "a graph over the members");
}

void Averager::meet(bool with_sizes) {
  copy_bytes(mean_, x_);
  exact_mean(mean_);
  if (!with_sizes) return;
  size_ = Tensor({x_.size()}, x_.dtype(), circle_.comm.allocator());
  absolute(size_, x_);
  exact_mean(size_);
}

double Averager::largest() const { return largest_of(mean_); }

void Averager::exact_mean(const Tensor& x) {
  if (holds_doubles(x)) return exact_mean_of_doubles(x);
  circle_.comm.mean(x).wait();
}

// The member that owns a part sums it in rank order and sends the mean to all.
void Averager::exact_mean_of_doubles(const Tensor& x) {
  const int n = circle_.comm.size();
  const Rank me = circle_.comm.rank();
  const int64_t step = means_++;
  const auto part = [&](Rank r) {
    const int64_t from = x.size() * r / n, to = x.size() * (r + 1) / n;
    return x.view({to - from}, from);
  };
  for (Rank r = 0; r < n; ++r)
    if (r != me) circle_.comm.push(r, kPart, step, 1, part(r));
  const Tensor mine = part(me).clone();
  Tensor sum = mine;
  for (Rank r = 0; r < n; ++r) {
    const Tensor theirs = r == me ? mine : await(circle_, r, kPart, step, patience(), mine).payload;
    if (r == 0)
      sum = theirs.clone();
    else
      add_to(sum, theirs);
  }
  multiply(sum, 1.0 / n);
  for (Rank r = 0; r < n; ++r)
    if (r != me) circle_.comm.push(r, kMeanPart, step, 1, sum);
  for (Rank r = 0; r < n; ++r)
    copy_bytes(part(r), r == me ? sum : await(circle_, r, kMeanPart, step, patience(), part(r)).payload);
}

void Averager::round() {
  if (algorithm_ == Averaging::kAllReduce) {
    exact_mean(x_);
    copy_bytes(before_, x_);
  } else {
    const Mix p = in_fp32(graph_->at(circle_.comm.rank(), done_));
    if (algorithm_ == Averaging::kPushSum)
      push_sum(p);
    else if (!p.out.empty())
      pair(p.out[0].peer);
  }
  pushed_ = ++done_;
  taken_.clear();
}

void Averager::send_share(const Edge& e) {
  if (!holds_doubles(x_)) return circle_.comm.push(e.peer, kShare, done_, float(e.weight), x_, e.weight * w_);
  const Tensor share(x_.shape(), x_.dtype(), circle_.comm.allocator());
  multiplied(share, e.weight, x_);
  circle_.comm.push(e.peer, kShare, done_, 1, share, e.weight * w_);
}

// One peer at a time: if it has gone, its share stays here and its edge is skipped.
void Averager::push_sum(const Mix& p) {
  double kept = p.self;
  std::vector<float> sent;
  for (const Edge& e : p.out) try {
      send_share(e);
      sent.push_back(float(e.weight));
    } catch (const PeerLost&) { kept += e.weight; }
  if (holds_doubles(x_))
    multiply(x_, kept);
  else
    mix({.y = x_, .x = x_, .self = kept, .sent = sent, .wire = circle_.comm.options().wire});
  w_ *= kept;
  pushed_ = done_ + 1;
  for (const Edge& e : p.in) try {
      add(await(circle_, e.peer, kShare, done_, patience(), x_));
      taken_.insert(e.peer);
    } catch (const Timeout&) { owed_.emplace(e.peer, done_); }
  // A message that comes late counts when it comes.
  std::erase_if(owed_, [&](const auto& o) {
    const auto late = circle_.comm.poll(o.first, kShare, o.second);
    if (late) add(*late);
    return late.has_value();
  });
}

void Averager::add(const Message& m) {
  add_to(x_, m.payload);
  w_ += m.weight;
}

bool Averager::near(Rank peer) const {
  return !holds_doubles(x_) && share_memory(circle_.comm, peer);  // doubles always travel as messages
}

// Broken off in shared memory, every number is averaged on both sides or on none. By messages, both must have
// sent before either may average.
void Averager::pair(Rank peer) {
  if (near(peer)) return average_in_place(circle_.comm, peer, x_, kInPlace, done_);
  circle_.comm.push(peer, kPair, done_, 1, x_);
  pushed_ = done_ + 1;
  average_in(await(circle_, peer, kPair, done_, circle_.comm.options().deadline, x_));
}

void Averager::average_in(const Message& m) {
  average_into(x_, m.payload);
  taken_.insert(m.from);
}

Spread Averager::look(Wish mine) {
  const Distance d = distance(x_, w_, mean_, size_);
  Spread s;
  for (const auto& member : tell(circle_, {d.worst, d.relative, d.length, double(mine)}, told_++)) {
    s.worst = std::max(s.worst, member[0]);
    s.relative = std::max(s.relative, member[1]);
    s.rms = std::hypot(s.rms, member[2]);
    s.wishes.push_back(Wish(int(member[3])));
  }
  s.rms /= std::sqrt(double(std::max<int64_t>(1, x_.size()) * circle_.comm.size()));
  return s;
}

Mass Averager::held() const { return {w_, sum_of(x_)}; }

Mass Averager::mass() {
  const Mass mine = held();
  Mass all;
  for (const auto& m : tell(circle_, {mine.w, mine.x}, told_++)) all.w += m[0], all.x += m[1];
  return all;
}

void Averager::divide() {
  multiply(x_, 1 / w_);
  w_ = 1;
}

void Averager::bequeath(Rank heir) {
  circle_.comm.push(heir, kWill, 0, 1, x_, w_);
  w_ = 0;
}
void Averager::inherit(Rank leaving) {
  add(circle_.comm.take(leaving, kWill, 0));
  if (before_) copy_bytes(before_, x_);
}

// Each rank is asked how much it has sent, because small messages may overtake large ones.
void Averager::absorb(const Circle& circle, const std::vector<Rank>& ranks) {
  Communicator& living = circle.comm;
  for (Rank r = 0; r < living.size(); ++r)
    if (r != living.rank()) living.push(r, kFence, 0, 1, bits_of({double(epoch_), double(pushed_)}));
  if (algorithm_ == Averaging::kAllReduce) copy_bytes(x_, before_);
  for (Rank r = 0; r < living.size(); ++r) {
    if (r == living.rank()) continue;
    const auto fence =
        numbers_of(await(circle, r, kFence, 0, living.options().deadline, Tensor({2}, kI64)).payload);
    const Rank peer = ranks[size_t(r)];
    if (fence[0] == double(epoch_) && int64_t(fence[1]) > done_ && awaited(peer)) fetch(circle, peer);
  }
}

// Whether this rank's unfinished gossip lacks a message of that peer.
bool Averager::awaited(Rank peer) const {
  if (algorithm_ == Averaging::kAllReduce || taken_.count(peer)) return false;
  if (algorithm_ == Averaging::kPairwise && (near(peer) || pushed_ <= done_)) return false;
  const std::vector<Edge> in = graph_->at(circle_.comm.rank(), done_).in;
  return std::any_of(in.begin(), in.end(), [&](const Edge& e) { return e.peer == peer; });
}

// The message of a living rank is on its way; the members that are dead would end any other wait for it.
void Averager::fetch(const Circle& living, Rank peer) try {
  const Tag tag = algorithm_ == Averaging::kPairwise ? kPair : kShare;
  for (const auto began = Clock::now(); seconds_since(began) < patience();) {
    if (const auto m = circle_.comm.poll(peer, tag, done_)) {
      algorithm_ == Averaging::kPairwise ? average_in(*m) : add(*m);
      taken_.insert(peer);
      return;
    }
    require_all(living.comm);
    living.require_unchanged();
    nap(std::chrono::microseconds(100));
  }
  owed_.emplace(peer, done_);
} catch (const PeerLost&) {
  if (!living.comm.membership().dead().empty()) throw;
  owed_.emplace(peer, done_);  // the link by which it had been sent was lost
}

}  // namespace skein::comm
