// Asynchronous decentralized parallel SGD.  Lian, Zhang, Zhang & Liu, ICML 2018, Algorithm 1.
//
//   x   model of this worker, which its partners average while it computes
//   me.x   a snapshot of it, where the gradient is taken
#include "optim/gossip/exact_average.h"
#include "optim/gossip/pairing.h"
#include "optim/strategies.h"

namespace skein::optim {
namespace {

class AdPsgd final : public Gossiping {
 public:
  AdPsgd(const Options& o, int world) : pair_(o, world) {}

  void start(Worker& me) override { pair_.start(me); }

  Tensor iterate(Worker& me, int64_t) override {
    pair_.snapshot(me);
    const bool asked = pair_.ask(me);   // x sets out to a partner; meanwhile
    const Tensor loss = me.gradient();  // g = grad F(snapshot), and others may average x
    if (asked) pair_.wait_a_moment();   // for that partner only
    pair_.step(me);                     // x <- x - eta u: x as it is now, u at the snapshot
    return loss;
  }

  void settle(Worker& me) override { pair_.meet(me); }
  void average(Worker& me) override { pair_.average(me); }
  void visit(Archive& a) override { pair_.visit(a); }
  Tensor contribution(Worker&) override { return pair_.x(); }

 private:
  Pairing pair_;
};

}  // namespace

std::unique_ptr<Strategy> make_ad_psgd(const Options& o, int world) {
  auto pairs = std::make_unique<AdPsgd>(o, world);  // refuses what cannot be
  if (world == 1) return make_sgd(o, world);        // it has no partner
  return with_exact_average(std::move(pairs), o, world, true);
}

}  // namespace skein::optim
