// Decentralized SGD for unequal data: each worker accumulates a correction that cancels the constant
// differences between the workers' gradients.
//   d2                  D2: Tang, Lian, Yan, Zhang & Liu, ICML 2018
//   momentum-tracking   Takezawa et al., 2022: gradient tracking of the local rule's steps, momentum included
//
//   x_i  model of worker i      u_i  -eta times the direction of the local rule, at x_i
//   c_i  correction, starts 0
//   W    symmetric mixing weights; of d2, (I + W) / 2 of one graph, since it diverges where an eigenvalue is
//        below -1/3
#include "engine/vectors/vec.h"
#include "optim/gossip/exact_average.h"

namespace skein::optim {
namespace {

// u <- -eta times the direction of the local rule.
void take_step(Worker& me, const Tensor& u) {
  fill(u, 0.f);
  me.local_step(u);
}

class D2 final : public GossipingX {
 public:
  D2(const Options& o, int world) : GossipingX(o, world, "ring", 2, "d2") {
    const Graph& g = gossip_.graph();
    if (!g.stands_still())
      throw BadOption(text("--topology ", g.name(), ": d2 needs a graph that stays the same, as ring, ",
                           "complete, or a file's; on others take momentum-tracking"));
    if (world > 1 && codec_of(o).kind == Codec::kTopK)
      throw BadOption(text("--wire ", o.word("wire", ""),
                           ": d2 diverges with copies that follow slowly; allowed are ",
                           "fp32, bf16, int8 and int4, or --algorithm momentum-tracking"));
  }

  void start(Worker& me) override {
    c_ = Tensor::zeros(me.x.shape(), kF32, me.x.device());
    u_ = me.x.clone(), y_ = me.x.clone(), d_ = me.x.clone();
    gossip_.start(me, y_);
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    take_step(me, u_);
    copy(y_, me.x), axpy(y_, 1.f, u_), axpy(y_, 1.f, c_);
    gossip_.give(me, k, y_);                   // y_i = x_i + u_i + c_i
    gossip_.take_differences(me, k, d_, y_);   // d_i = sum_j W_ij (y_j - y_i)
    axpy(c_, 0.5f, d_);                        // c_i <- c_i + d_i / 2, which is x'_i - x_i - u_i
    axpy(me.x, 1.f, u_), axpy(me.x, 1.f, c_);  // x_i <- x'_i = y_i + d_i / 2
    return loss;
  }

  void average(Worker& me) override {
    GossipingX::average(me);
    fill(c_, 0.f);
  }
  void visit(Archive& a) override { a("c", c_), GossipingX::visit(a); }

 private:
  Tensor c_;
  Tensor u_, y_, d_;  // scratch
};

// Both vectors travel as one message of twice the model's size.
class MomentumTracking final : public GossipingX {
 public:
  MomentumTracking(const Options& o, int world) : GossipingX(o, world, "ring", 2, "momentum-tracking") {}

  void start(Worker& me) override {
    const int64_t n = me.x.size();
    both_ = Tensor::zeros({2 * n}, kF32, me.x.device());
    y_ = both_.view({n}), c_ = both_.view({n}, n);
    u_ = me.x.clone();
    gossip_.start(me, both_);
  }

  Tensor iterate(Worker& me, int64_t k) override {
    const Tensor loss = me.gradient();
    take_step(me, u_);
    axpy(c_, 1.f, u_);
    copy(y_, me.x), axpy(y_, 1.f, c_);
    gossip_.give(me, k, both_);
    gossip_.take(me, k, both_, both_);  // x_i <- sum_j W_ij (x_j + u_j + c_j)
    axpy(c_, -1.f, u_);                 // c_i <- sum_j W_ij (c_j + u_j) - u_i
    copy(me.x, y_);
    return loss;
  }

  void visit(Archive& a) override { a("c", c_), GossipingX::visit(a); }

 private:
  Tensor both_, y_, c_;  // y_ and c_ are its halves
  Tensor u_;             // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_d2(const Options& o, int world) { return with_exact_average<D2>(o, world); }
std::unique_ptr<Strategy> make_momentum_tracking(const Options& o, int world) {
  return with_exact_average<MomentumTracking>(o, world);
}

}  // namespace skein::optim
