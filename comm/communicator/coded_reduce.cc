// All-reduce in the bits of a codec, by messages over any transport.
//
// Each rank owns a part of x. It sends its numbers of every other part, coded, to that part's owner. The
// owner adds them to its own in rank order, in f32, codes the sum and sends it to all ranks. So every number
// is rounded twice. The rank that rounds keeps the error in its residual: for the parts of others that of the
// numbers sent, for its own part that of the sum. The owner, too, uses the decoded sum, so all ranks,
// transports and runs get the same bits.
#include <algorithm>
#include <deque>

#include "comm/communicator/coding.h"
#include "comm/communicator/state.h"
#include "engine/vectors/vec.h"

namespace skein::comm {
namespace {

constexpr int64_t kCodedSegment = int64_t(1) << 18;  // elements each rank owns of one segment
constexpr int64_t kCodedAhead = 32;                  // segments sent before their sums are back

class CodedReduction final : public Pending::Op {
 public:
  CodedReduction(Group& g, Sender& s, Receiver& r, int64_t sequence, const Tensor& x, const Coding& c)
      : g_(g),
        sender_(s),
        receiver_(r),
        n_(g.size()),
        me_(g.rank),
        sequence_(sequence),
        codec_(c.codec),
        x_(x.view({x.size()})),
        residual_(c.residual.view({c.residual.size()})),
        segments_((x.size() + kCodedSegment * n_ - 1) / (kCodedSegment * n_)) {
    CHECK(x.dtype() == kF32 && residual_.size() == x.size() && residual_.device() == x.device(), x.dtype(),
          residual_.size(), x.size());
    CHECK(segments_ < (1 << 20), "too large for one all-reduce:", x.size());
    name = "coded all-reduce";
    bytes = codec_.bytes(x.size());
  }

  void advance() override {
    if (done) return;
    for (bool moved = true; moved;) {
      moved = flush();
      while (sent_ < segments_ && sent_ < back_.segments + kCodedAhead) send_shares(sent_++), moved = true;
      while (sums_.segments < sent_ && sum(sums_.segments)) ++sums_.segments, moved = true;
      while (back_.segments < sums_.segments && receive(back_.segments)) ++back_.segments, moved = true;
    }
    awaited = outgoing_.empty() ? nullptr : &outgoing_.front().codes.ready;
    missing =
        sums_.segments < sent_ ? sums_.awaited : back_.awaited;  // the others wait for this rank's sums first
    done = back_.segments == segments_ && outgoing_.empty();
  }

 private:
  // Codes that are on their way to the host's memory, or there.
  struct Outgoing {
    std::vector<Share> to;
    Tag tag;
    int64_t step;
    uint32_t layout;
    Staging::Landing codes;
  };

  // What comes from the others in order, segment after segment and rank after rank.
  struct Phase {
    int64_t segments = 0;  // complete
    Rank next = 0;         // whose message of the next one is due
    Key awaited;
  };

  // Segment s covers [s n kCodedSegment, ...), and rank r owns the r-th part of it, in whole chunks.
  Tensor part(const Tensor& of, int64_t segment, Rank owner) const {
    const int64_t begin = segment * kCodedSegment * n_,
                  length = std::min(kCodedSegment * n_, x_.size() - begin);
    const int64_t chunks = (length + Codec::kChunk - 1) / Codec::kChunk;
    const int64_t lo = std::min(length, chunks * owner / n_ * Codec::kChunk),
                  hi = std::min(length, chunks * (owner + 1) / n_ * Codec::kChunk);
    return of.view({hi - lo}, begin + lo);
  }
  uint32_t purpose(LayoutPurpose p, Rank owner) const {
    return layout_of(x_.size(), kU8, uint32_t(p) + (uint32_t(owner) << 8) + (uint32_t(codec_.kind) << 28));
  }
  Tensor blank(const Tensor& of) const {
    const int64_t size = codec_.bytes(of.size());
    return of.device().is_host() ? Tensor({size}, kU8, g_.transport.memory().allocator())
                                 : Tensor({size}, kU8, of.device());
  }

  void send(std::vector<Share> to, Tag tag, int64_t s, uint32_t layout, const Tensor& codes) {
    outgoing_.push_back({std::move(to), tag, sequence_ + s, layout, g_.staging.down(codes)});
  }
  // Sends coded segments in order, as far as they have reached the host. Returns whether it sent any.
  bool flush() {
    bool moved = false;
    for (; !outgoing_.empty() && outgoing_.front().codes.ready.ready(); outgoing_.pop_front(), moved = true) {
      const Outgoing& o = outgoing_.front();
      sender_.send(o.to, o.tag, o.step, o.codes.host, o.layout, Sender::Memory::kLent);
    }
    return moved;
  }
  bool fetch(Rank from, Tag tag, int64_t s, LayoutPurpose p, Rank owner, int64_t elements, Message& m) {
    missing = g_.key(from, tag, sequence_ + s);
    std::optional<Message> got = receiver_.poll(missing, {purpose(p, owner), codec_.bytes(elements), kU8});
    if (!got) return false;
    m = receiver_.unpack(std::move(*got));
    landed = std::max(landed, m.arrived);
    return true;
  }
  Tensor beside(const Message& m) const { return g_.staging.beside(x_.device(), m.payload); }

  void send_shares(int64_t s) {
    for (const Share& peer : all_but(me_, n_)) {
      const Tensor theirs = part(x_, s, peer.to);
      if (theirs.size() == 0) continue;
      const Tensor codes = blank(theirs);
      encode(codec_, codes, theirs, part(residual_, s, peer.to));
      send({peer}, kFirst, s, purpose(kCodedShare, peer.to), codes);
    }
    flush();
  }

  bool sum(int64_t s) {
    const Tensor mine = part(x_, s, me_);
    if (mine.size() == 0) return true;
    shares_.resize(size_t(n_));
    for (; sums_.next < n_; ++sums_.next) {
      if (sums_.next == me_) continue;
      if (!fetch(sums_.next, kFirst, s, kCodedShare, me_, mine.size(), shares_[size_t(sums_.next)])) {
        sums_.awaited = missing;
        return false;
      }
    }
    sums_.next = 0;
    const Tensor all = me_ == 0 ? mine : Tensor(mine.shape(), kF32, mine.device());
    if (me_ != 0) decode(codec_, all, beside(shares_[0]));
    for (Rank r = 1; r < n_; ++r)
      r == me_ ? axpy(all, 1.f, mine) : decode_add(codec_, all, beside(shares_[size_t(r)]));
    shares_.clear();
    const Tensor codes = blank(mine);
    encode(codec_, codes, all, part(residual_, s, me_), mine);
    landed = std::max(landed, g_.now());
    send(all_but(me_, n_), kSecond, s, purpose(kCodedSum, me_), codes);
    flush();
    return true;
  }

  bool receive(int64_t s) {
    for (Message m; back_.next < n_; ++back_.next) {
      if (back_.next == me_) continue;
      const Tensor theirs = part(x_, s, back_.next);
      if (theirs.size() == 0) continue;
      if (!fetch(back_.next, kSecond, s, kCodedSum, back_.next, theirs.size(), m)) {
        back_.awaited = missing;
        return false;
      }
      decode(codec_, theirs, beside(m));
    }
    back_.next = 0;
    return true;
  }

  Group& g_;
  Sender& sender_;
  Receiver& receiver_;
  const Rank n_, me_;
  const int64_t sequence_;
  const Codec codec_;
  const Tensor x_, residual_;
  const int64_t segments_;
  int64_t sent_ = 0;   // segments whose shares were sent
  Phase sums_, back_;  // this rank's sums of others' shares; others' sums, which come back
  std::vector<Message> shares_;
  std::deque<Outgoing> outgoing_;
};

}  // namespace

std::shared_ptr<Pending::Op> coded_reduction(Group& g, Sender& s, Receiver& r, int64_t sequence,
                                             const Tensor& x, const Coding& c) {
  return std::make_shared<CodedReduction>(g, s, r, sequence, x, c);
}

}  // namespace skein::comm
