// Decentralized parallel SGD.  Lian et al., NeurIPS 2017, Algorithm 1.
//
//   x_i  model of worker i        W_ij  symmetric mixing weights        u_i  local direction, taken at x_i(k)
#include "engine/vectors/vec.h"
#include "optim/gossip/exact_average.h"

namespace skein::optim {
namespace {

class DPsgd final : public GossipingX {
 public:
  DPsgd(const Options& o, int world) : GossipingX(o, world, "ring", 2, "d-psgd") {}

  void start(Worker& me) override { next_ = me.x.clone(), GossipingX::start(me); }

  Tensor iterate(Worker& me, int64_t k) override {
    gossip_.give(me, k, me.x);          // x_i(k) sets out,
    const Tensor loss = me.gradient();  // and travels during forward and backward
    gossip_.take(me, k, next_, me.x);   // x_i(k+1) = sum_j W_ij x_j(k)
    me.local_step(next_);               //            - eta u_i, u_i at x_i(k)
    copy(me.x, next_);
    return loss;
  }

 private:
  Tensor next_;  // scratch
};

}  // namespace

std::unique_ptr<Strategy> make_d_psgd(const Options& o, int world) {
  return with_exact_average<DPsgd>(o, world);
}

}  // namespace skein::optim
