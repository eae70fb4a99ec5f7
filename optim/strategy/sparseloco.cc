// SparseLoCo: of a round's progress each worker sends only the largest numbers, and keeps the rest for later
// rounds, in the place of DiLoCo's outer momentum. Sarfi et al., 2025.
//
//   z      anchor, the same everywhere      e_i  residual: what worker i has not sent yet      nu  outer rate
//   Delta  z - x_i, the progress of worker i in a round          R  workers
//   T      of every 4096 numbers the --density-th part that is largest, as positions and bf16 values
//
// --sparse-mean all is the mean of the paper, senders that of its published program, which divides by the
// number of workers that sent an element: up to R times as much.
#include "engine/vectors/codec.h"
#include "engine/words/find_row.h"
#include "optim/periodic/periodic.h"

namespace skein::optim {
namespace {

class SparseLoCo final : public Strategy, public InRounds {
 public:
  explicit SparseLoCo(const Options& o)
      : period_(o, 30),
        top_{Codec::kTopK, o.number("density", 0.01, 1e-6, 1)},
        of_senders_(
            one_of<bool>("--sparse-mean", o.word("sparse-mean", "all"), {{"all", false}, {"senders", true}})),
        nu_(o.number("outer-lr", 1, 0)),
        decay_(o.number("residual-decay", 0.999, 0, 1)),
        mixes_(buffer_policy(o) == BufferPolicy::kMix) {}

  void start(Worker& me) override {
    z_ = me.x.clone(), e_ = Tensor::zeros(z_.shape(), kF32, z_.device());
    delta_ = e_.clone(), mean_ = e_.clone();
    if (of_senders_) senders_ = e_.clone();
    if (mixes_ && me.buffers.size() > 0) buffers_ = me.visible(me.buffers.shape(), kF32);
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    me.local_step(me.x);  // x_i <- x_i - eta u_i
    if (!period_.ends(k)) return loss;
    copy(delta_, z_), axpy(delta_, -1.f, me.x);
    scale(delta_, me.weight != 0 ? nu_ * me.weight * me.comm.size() : nu_);
    scale(e_, decay_);  // e_i <- decay e_i + nu Delta;  q_i = T(e_i);  e_i <- e_i - q_i
    if (me.comm.size() == 1)
      copy(mean_, delta_), axpy(mean_, 1.f, e_), fill(e_, 0.f);
    else
      exchange(me, k);
    axpy(z_, -1.f, mean_), copy(me.x, z_);  // x_i <- z <- z - sum_i q_i / R
    return loss;
  }

  Shared shared() override {
    return {.is = [this](int64_t k) { return period_.begins(k); }, .arrived = {}};
  }
  void visit(Archive& a) override { a("z", z_), a("residual", e_); }

 private:
  // mean <- of what all send, in the order of their ranks, so that they get the same bits.
  void exchange(Worker& me, int64_t k) {
    const Tensor mine = blank(me);
    encode(top_, mine, delta_, e_);
    std::vector<comm::Share> others;
    for (comm::Rank r = 0; r < me.comm.size(); ++r)
      if (r != me.comm.rank()) others.push_back({r});
    me.comm.push(others, kCodes, k, mine);
    fill(mean_, 0.f);
    if (of_senders_) fill(senders_, 0.f);
    for (comm::Rank r = 0; r < me.comm.size(); ++r) {
      const Tensor q = r == me.comm.rank() ? mine : me.comm.take(r, kCodes, k, mine).payload;
      decode_add(top_, mean_, q);
      if (of_senders_) count_sent(top_, senders_, q);
    }
    of_senders_ ? divide_by_counts(mean_, senders_) : scale(mean_, 1.0 / me.comm.size());
    if (!buffers_) return;
    copy(buffers_, me.buffers);
    mean_of(me, buffers_).wait();
    copy(me.buffers, buffers_);
  }
  Tensor blank(const Worker& me) const { return me.visible({top_.bytes(z_.size())}, kU8); }

  static constexpr comm::Tag kCodes = 1;
  const Period period_;
  const Codec top_;
  const bool of_senders_;
  const double nu_, decay_;
  const bool mixes_;
  Tensor z_, e_;
  Tensor delta_, mean_, senders_, buffers_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_sparseloco(const Options& o, int) { return std::make_unique<SparseLoCo>(o); }

}  // namespace skein::optim
