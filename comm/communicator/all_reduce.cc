// All-reduce: over windows where ranks see each other's memory, by messages elsewhere.
//
// Every element is summed in rank order by one rank, its owner, so all ranks, transports and runs get the
// same bits. Ranks that see each other's memory announce where their x lies; then each sums its share of all
// windows in place and tells the others. Elsewhere each rank sends every owner its share in segments of about
// a piece, and the owner sends back the sum (the volume of a ring, two hops instead of 2(n-1)).
#include <algorithm>
#include <mutex>

#include "comm/communicator/state.h"
#include "comm/communicator/sum.h"

namespace skein::comm {
namespace {

constexpr int64_t kSegment = kPieceBytes / 4;  // elements each rank owns of one segment
constexpr int64_t kAhead = 32;                 // segments sent before their sums are back
constexpr int64_t kSmall = 2048;               // elements: up to here every rank sends all to all, in one hop

void keep_for_ever(const Tensor& x) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<Tensor>;  // outlives all that is destroyed at exit
  const std::lock_guard lock(mutex);
  kept.push_back(x);
}

// Large class: the state of one reduction in either of its two ways, by shared memory or by messages.
class Reduction final : public Pending::Op {
 public:
  Reduction(Group& g, Sender& s, Receiver& r, int64_t sequence, const Tensor& x)
      : g_(g), sender_(s), receiver_(r), n_(g.size()), me_(g.rank), sequence_(sequence) {
    name = "all-reduce";
    bytes = x.bytes();
    target_ = x;
    const Staging::Landing landing = g_.staging.down(x);
    x_ = landing.host, arrived_ = landing.ready, awaited = &arrived_;
    layout_ = layout_of(x.size(), x.dtype(), kReducePlace);
  }

  // The others write their sums into memory that was announced to them, whatever has become of this rank.
  ~Reduction() override {
    if (stage_ == kOffsets || stage_ == kOthers) keep_for_ever(x_);
  }

  void advance() override {
    if (stage_ == kComing && arrived_.ready()) start();
    if (stage_ == kOffsets) read_offsets();
    if (stage_ == kOthers) hear_done();
    if (stage_ == kMessages) exchange();
    if (stage_ == kFinished && !done) {
      if (!target_.device().is_host()) g_.staging.back(target_, x_);
      target_.storage()->written();  // by peers, too
      done = true;
    }
  }

 private:
  enum Stage { kComing, kOffsets, kOthers, kMessages, kFinished };

  void start() {
    awaited = nullptr;
    if (g_.shares_memory)
      announce();
    else
      begin_messages();
  }
  Key key(Rank from, Tag tag, int64_t part) { return g_.key(from, tag, sequence_ + part); }
  bool fetch(Rank from, Tag tag, int64_t part, const Expected& expected, Message& m) {
    missing = key(from, tag, part);
    std::optional<Message> got = receiver_.poll(missing, expected);
    if (!got) return false;
    m = receiver_.unpack(std::move(*got));
    landed = std::max(landed, m.arrived);
    return true;
  }

  // ---- over shared memory
  void announce() {
    const int64_t mine = g_.transport.memory().offset_of(x_).value_or(-1);
    offsets_.assign(size_t(n_), -1);
    offsets_[size_t(me_)] = mine;
    sender_.send(all_but(me_, n_), kFirst, sequence_, Tensor::of<int64_t>({1}, {mine}), layout_, kLent);
    stage_ = kOffsets;
  }
  void read_offsets() {
    for (Message m; next_ < n_; ++next_)
      if (next_ != me_) {
        if (!fetch(next_, kFirst, 0, {layout_, 1, kI64}, m)) return;
        offsets_[size_t(next_)] = *m.payload.data<int64_t>();
      }
    next_ = 0;
    if (std::find(offsets_.begin(), offsets_.end(), -1) != offsets_.end()) return begin_messages();
    std::vector<Tensor> windows;
    const int64_t lo = x_.size() * me_ / n_, hi = x_.size() * (me_ + 1) / n_;
    for (Rank r = 0; r < n_; ++r) {
      const Tensor all = r == me_ ? x_
                                  : g_.transport.memory().window(g_.world_rank(r), offsets_[size_t(r)],
                                                                 x_.size(), x_.dtype());
      windows.push_back(all.view({hi - lo}, lo));
    }
    if (hi > lo) sum_in_order(windows, windows);
    g_.meter->moved(2 * (n_ - 1) * (hi - lo) * size_of(x_.dtype()), g_.counted());
    landed = std::max(landed, g_.now());
    sender_.send(all_but(me_, n_), kSecond, sequence_, nothing(),
                 layout_of(x_.size(), x_.dtype(), kReduceDone), kLent);
    stage_ = kOthers;
  }
  void hear_done() {
    const Expected done(layout_of(x_.size(), x_.dtype(), kReduceDone), 0, kU8);
    for (Message m; next_ < n_; ++next_)
      if (next_ != me_ && !fetch(next_, kSecond, 0, done, m)) return;
    stage_ = kFinished;
  }

  // ---- by messages: segment s covers [s * n * segment_, ...), and rank r owns the r-th part of it
  void begin_messages() {
    first_ = g_.shares_memory ? kThird : kFirst;
    next_ = 0;
    const ReducePlan plan = reduce_plan(g_, x_);
    small_ = plan.small, segment_ = plan.segment;
    segments_ = small_ ? 1 : (x_.size() + segment_ * n_ - 1) / (segment_ * n_);
    CHECK(segments_ < (1 << 20), "too large for one all-reduce:", x_.size());
    stage_ = kMessages;
  }
  Tensor part(int64_t segment, Rank owner) const {
    if (small_) return x_;
    const int64_t begin = segment * segment_ * n_, length = std::min(segment_ * n_, x_.size() - begin);
    const int64_t lo = length * owner / n_, hi = length * (owner + 1) / n_;
    return x_.view({hi - lo}, begin + lo);
  }
  uint32_t purpose(LayoutPurpose p, Rank owner) const {
    return layout_of(x_.size(), x_.dtype(), uint32_t(p) + (uint32_t(owner) << 8));
  }
  // A share of this owner's part of a segment, or its sum.
  Expected part_of(int64_t segment, LayoutPurpose p, Rank owner) const {
    return {purpose(p, small_ ? 0 : owner), part(segment, owner).size(), x_.dtype()};
  }

  void exchange() {
    for (bool moved = true; moved;) {
      moved = false;
      while (sent_ < segments_ && sent_ < back_ + kAhead) send_shares(sent_++), moved = true;
      while (summed_ < sent_ && sum(summed_)) ++summed_, moved = true;
      while (!small_ && back_ < summed_ && receive(back_)) ++back_, moved = true;
      if (small_) back_ = summed_;
    }
    // Others wait for this rank's sums, so a wait should be for what they lack.
    if (back_ == segments_)
      stage_ = kFinished;
    else
      missing = summed_ < sent_ ? waiting_share_ : waiting_sum_;
  }
  // The memory of x itself travels: each part is written again only when its sum is back, which is after it
  // was read. A small vector is summed by every rank, so a fast rank may write before a slow one has read:
  // it is copied.
  void send_shares(int64_t s) {
    for (const Share& peer : all_but(me_, n_))
      sender_.send({peer}, first_, sequence_ + s, part(s, peer.to),
                   purpose(kReduceShare, small_ ? 0 : peer.to), small_ ? kCopied : kLent);
  }
  // Sums this rank's part of a segment in rank order and sends the sum to all.
  bool sum(int64_t s) {
    shares_.resize(size_t(n_));
    for (Message m; next_ < n_; ++next_) {
      if (next_ == me_) continue;
      if (!fetch(next_, first_, s, part_of(s, kReduceShare, me_), m)) {
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
    landed = std::max(landed, g_.now());
    sender_.send(all_but(me_, n_), kSecond, sequence_ + s, mine, purpose(kReduceSum, me_));
    if (mine.size() > 0) copy_bytes(mine, rounded(mine));  // what the others will see
    return true;
  }
  bool receive(int64_t s) {
    for (Message m; from_ < n_; ++from_) {
      if (from_ == me_) continue;
      if (!fetch(from_, kSecond, s, part_of(s, kReduceSum, from_), m)) {
        waiting_sum_ = missing;
        return false;
      }
      if (m.payload.size() > 0) copy_bytes(part(s, from_), m.payload);
    }
    from_ = 0;
    return true;
  }
  // x after a journey over the wire.
  Tensor rounded(const Tensor& x) const {
    if (x.dtype() != kF32 || g_.options.wire == kF32) return x;
    Tensor there(x.shape(), g_.options.wire), back(x.shape());
    copy(there, x);
    copy(back, there);
    return back;
  }

  static constexpr auto kCopied = Sender::Memory::kCopied, kLent = Sender::Memory::kLent;
  Group& g_;
  Sender& sender_;
  Receiver& receiver_;
  const Rank n_, me_;
  const int64_t sequence_;
  Tensor target_, x_;
  uint32_t layout_ = 0;
  Event arrived_;  // x in host memory
  Stage stage_ = kComing;
  std::vector<int64_t> offsets_;  // of x in every rank's memory; -1: peers cannot see it
  Tag first_ = kFirst;
  bool small_ = false;
  int64_t segment_ = kSegment, segments_ = 0, sent_ = 0, summed_ = 0, back_ = 0;
  Rank next_ = 0, from_ = 0;
  std::vector<Tensor> shares_;
  Key waiting_share_, waiting_sum_;
};

}  // namespace

ReducePlan reduce_plan(const Group& g, const Tensor& x) {
  const double stands_for = g.transport.stands_for(x.dtype(), x.size());
  return {double(x.size()) * stands_for <= double(kSmall),
          std::max<int64_t>(1, int64_t(double(kSegment) / stands_for))};
}

std::shared_ptr<Pending::Op> reduction(Group& g, Sender& s, Receiver& r, int64_t sequence, const Tensor& x) {
  return std::make_shared<Reduction>(g, s, r, sequence, x);
}

}  // namespace skein::comm
