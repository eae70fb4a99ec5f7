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

// In the order of ranks.
Tensor mean_of_codes(const Tensor& like, const Codec& top, bool of_senders, const std::vector<Tensor>& all) {
  const Tensor mean = Tensor::zeros(like.shape(), kF32, like.device());
  const Tensor senders = of_senders ? mean.clone() : Tensor();
  for (const Tensor& q : all) {
    decode_add(top, mean, q);
    if (of_senders) count_sent(top, senders, q);
  }
  of_senders ? divide_by_counts(mean, senders) : scale(mean, 1.0 / double(all.size()));
  return mean;
}

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
    delta_ = e_.clone();
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
      axpy(delta_, 1.f, e_), axpy(z_, -1.f, delta_), fill(e_, 0.f);
    else
      exchange(me);
    copy(me.x, z_);  // x_i <- z <- z - sum_i q_i / R
    return loss;
  }

  Shared shared() override {
    return {.is = [this](int64_t k) { return period_.begins(k); }, .arrived = {}};
  }
  void visit(Archive& a) override { a("z", z_), a("residual", e_); }

 private:
  void exchange(Worker& me) {
    const Tensor mine = me.visible({top_.bytes(z_.size())}, kU8);
    encode(top_, mine, delta_, e_);
    const Tensor mean =
        me.comm.combine(mine, [like = z_, top = top_, of_senders = of_senders_](const auto& all) {
          return mean_of_codes(like, top, of_senders, all);
        });
    axpy(z_, -1.f, mean);
    if (!buffers_) return;
    copy(buffers_, me.buffers);
    mean_of(me, buffers_).wait();
    copy(me.buffers, buffers_);
  }

  const Period period_;
  const Codec top_;
  const bool of_senders_;
  const double nu_, decay_;
  const bool mixes_;
  Tensor z_, e_;
  Tensor delta_, buffers_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_sparseloco(const Options& o, int) { return std::make_unique<SparseLoCo>(o); }

}  // namespace skein::optim
