// All-reduce: over windows where ranks see each other's memory, by messages elsewhere.
//
// Every element is summed in rank order by one rank, its owner, so all ranks, transports and runs get the
// same bits. Ranks that see each other's memory announce where their x lies, each sums its share of all
// windows in place, and tells the others. Elsewhere each rank sends every owner its share in segments of
// about a piece, and the owner sends back the sum (the volume of a ring, two hops instead of 2(n-1)).
#include <algorithm>

#include "comm/communicator/pending.h"
#include "comm/communicator/sum.h"

namespace skein::comm {
namespace {

constexpr int64_t kSegment = kPieceBytes / 4;  // elements each rank owns of one segment
constexpr int64_t kAhead = 32;                 // segments sent before their sums are back
constexpr int64_t kSmall = 2048;               // elements that everybody sends to everybody: one hop

}  // namespace

class Reduction final : public Pending::Op {
 public:
  Reduction(Communicator& c, const Tensor& x)
      : c_(c), n_(c.size()), me_(c.rank()), sequence_(c.next_sequence()) {
    name = "all-reduce";
    bytes = x.bytes();
    target_ = x;
    const Staging::Landing landing = c.staging_->down(x);
    x_ = landing.host, arrived_ = landing.ready, awaited = &arrived_;
    layout_ = layout_of(x.size(), x.dtype(), kReducePlace);
  }

  void advance(Communicator&) override {
    if (stage_ == kComing && arrived_.ready()) start();
    if (stage_ == kPlaces) read_places();
    if (stage_ == kOthers) hear_done();
    if (stage_ == kMessages) exchange();
    if (stage_ == kFinished && !done) {
      if (!target_.device().is_host()) c_.staging_->back(target_, x_);
      target_.storage()->written();  // by peers, too
      done = true;
    }
  }

 private:
  enum Stage { kComing, kPlaces, kOthers, kMessages, kFinished };

  void start() {
    awaited = nullptr;
    if (c_.shares_memory_)
      announce();
    else
      begin_messages();
  }
  Key key(Rank from, Tag tag, int64_t part) { return c_.key(from, tag, sequence_ + part); }
  bool fetch(Rank from, Tag tag, int64_t part, uint32_t layout, Message& m) {
    missing = key(from, tag, part);
    std::optional<Message> got = c_.poll(missing, layout);
    if (!got) return false;
    m = c_.unpack(std::move(*got));
    landed = std::max(landed, m.arrived);
    return true;
  }

  // ---- over shared memory
  void announce() {
    const Tensor mine = place_message(c_.transport_, x_);
    places_.assign(size_t(n_), -1);
    places_[size_t(me_)] = *mine.data<int64_t>();
    c_.send_packed(all_but(me_, n_), kFirst, sequence_, mine, layout_, false);
    stage_ = kPlaces;
  }
  void read_places() {
    for (Message m; next_ < n_; ++next_)
      if (next_ != me_) {
        if (!fetch(next_, kFirst, 0, layout_, m)) return;
        places_[size_t(next_)] = place_in(m);
      }
    next_ = 0;
    if (std::find(places_.begin(), places_.end(), -1) != places_.end()) return begin_messages();
    std::vector<Tensor> windows;
    const int64_t lo = x_.size() * me_ / n_, hi = x_.size() * (me_ + 1) / n_;
    for (Rank r = 0; r < n_; ++r) {
      const Tensor all = r == me_ ? x_
                                  : c_.transport_.memory().window(c_.world_rank(r), places_[size_t(r)],
                                                                  x_.size(), x_.dtype());
      windows.push_back(all.view({hi - lo}, lo));
    }
    if (hi > lo) sum_in_order(windows, windows);
    c_.meter_->moved(2 * (n_ - 1) * (hi - lo) * size_of(x_.dtype()));
    landed = std::max(landed, c_.now());
    c_.send_packed(all_but(me_, n_), kSecond, sequence_, nothing(),
                   layout_of(x_.size(), x_.dtype(), kReduceDone), false);
    stage_ = kOthers;
  }
  void hear_done() {
    for (Message m; next_ < n_; ++next_)
      if (next_ != me_ && !fetch(next_, kSecond, 0, layout_of(x_.size(), x_.dtype(), kReduceDone), m)) return;
    stage_ = kFinished;
  }

  // ---- by messages: segment s covers [s * n * kSegment, ...), of which rank r owns the r-th part
  void begin_messages() {
    first_ = c_.shares_memory_ ? kThird : kFirst;
    next_ = 0;
    small_ = x_.size() <= kSmall;
    segments_ = small_ ? 1 : (x_.size() + kSegment * n_ - 1) / (kSegment * n_);
    CHECK(segments_ < (1 << 20), "too large for one all-reduce:", x_.size());
    stage_ = kMessages;
  }
  Tensor part(int64_t segment, Rank owner) const {
    if (small_) return x_;
    const int64_t begin = segment * kSegment * n_, length = std::min(kSegment * n_, x_.size() - begin);
    const int64_t lo = length * owner / n_, hi = length * (owner + 1) / n_;
    return x_.view({hi - lo}, begin + lo);
  }
  uint32_t purpose(Purpose p, Rank owner) const {
    return layout_of(x_.size(), x_.dtype(), uint32_t(p) + (uint32_t(owner) << 8));
  }

  void exchange() {
    for (bool moved = true; moved;) {
      moved = false;
      while (sent_ < segments_ && sent_ < back_ + kAhead) send_shares(sent_++), moved = true;
      while (summed_ < sent_ && sum(summed_)) ++summed_, moved = true;
      while (!small_ && back_ < summed_ && receive(back_)) ++back_, moved = true;
      if (small_) back_ = summed_;
    }
    // What is missing for sums of ours keeps others waiting, so it is what a wait should be for.
    if (back_ == segments_)
      stage_ = kFinished;
    else
      missing = summed_ < sent_ ? waiting_share_ : waiting_sum_;
  }
  // The memory of x itself travels: each part is written again only when its sum is back, which is after it
  // was read. A small vector is summed by everybody, so a fast rank may write before a slow one has read: it
  // is packed.
  void send_shares(int64_t s) {
    for (const Share& peer : all_but(me_, n_))
      c_.send_packed({peer}, first_, sequence_ + s, part(s, peer.to),
                     purpose(kReduceShare, small_ ? 0 : peer.to), small_);
  }
  // Sums my part of a segment in rank order and sends it round.
  bool sum(int64_t s) {
    shares_.resize(size_t(n_));
    for (Message m; next_ < n_; ++next_) {
      if (next_ == me_) continue;
      if (!fetch(next_, first_, s, purpose(kReduceShare, small_ ? 0 : me_), m)) {
        waiting_share_ = missing;
        return false;
      }
      shares_[size_t(next_)] = m.payload;
    }
    next_ = 0;
    const Tensor mine = part(s, me_);
    shares_[size_t(me_)] = small_ ? rounded(mine) : mine;  // small: all sum the same rounded numbers
    if (mine.size() > 0) sum_in_order({mine}, shares_);
    shares_.clear();
    if (small_) return true;
    landed = std::max(landed, c_.now());
    c_.send_packed(all_but(me_, n_), kSecond, sequence_ + s, mine, purpose(kReduceSum, me_), true);
    if (mine.size() > 0) copy_bytes(mine, rounded(mine));  // what the others will see
    return true;
  }
  bool receive(int64_t s) {
    for (Message m; from_ < n_; ++from_) {
      if (from_ == me_) continue;
      if (!fetch(from_, kSecond, s, purpose(kReduceSum, from_), m)) {
        waiting_sum_ = missing;
        return false;
      }
      if (m.payload.size() > 0) copy_bytes(part(s, from_), m.payload);
    }
    from_ = 0;
    return true;
  }
  // x as it looks after a journey over the wire.
  Tensor rounded(const Tensor& x) const {
    if (x.dtype() != kF32 || c_.options_.wire == kF32) return x;
    Tensor there(x.shape(), c_.options_.wire), back(x.shape());
    copy(there, x);
    copy(back, there);
    return back;
  }

  Communicator& c_;
  const Rank n_, me_;
  const int64_t sequence_;
  Tensor target_, x_;
  uint32_t layout_ = 0;
  Event arrived_;  // x in host memory
  Stage stage_ = kComing;
  std::vector<int64_t> places_;
  Tag first_ = kFirst;
  bool small_ = false;
  int64_t segments_ = 0, sent_ = 0, summed_ = 0, back_ = 0;
  Rank next_ = 0, from_ = 0;
  std::vector<Tensor> shares_;
  Key waiting_share_, waiting_sum_;
};

Pending Communicator::all_reduce(const Tensor& x) {
  CHECK(x && x.dtype() != kU8, "all_reduce sums f32, bf16, f16, i32 and i64");
  if (size() == 1) return {};
  const double began = now();
  if (auto op = device_reduction(x)) return begin(std::move(op), began);
  return begin(std::make_shared<Reduction>(*this, x), began);
}

}  // namespace skein::comm
