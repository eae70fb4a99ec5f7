// Overlap Stochastic Gradient Push.  Assran, Loizou, Ballas & Rabbat, ICML 2019, Algorithm 2.
//
//   X   biased parameters, the push-sum numerator        w   push-sum weight, starts at 1
//   z   X / w, the de-biased model; lives in me.x, where gradients are taken
//   M   what in-peers have sent, and w_M their weights       p   number of out-peers
//   s   --staleness: forwards for which a gossip may be late before it is waited for
#include "optim/gossip/exact_average.h"
#include "optim/gossip/flights.h"

namespace skein::optim {
namespace {

class Osgp final : public Gossiping {
 public:
  Osgp(const Options& o, int world) : flights_(o, world) {}

  void start(Worker& me) override { flights_.start(me); }

  Tensor iterate(Worker& me, int64_t) override {
    // (1) wait for a gossip that is too late; if there is none in the air or it has landed:
    // (2) X += M, w += w_M, (3) X, w <- X, w / (p+1), and that share is sent
    flights_.gossip(me);
    flights_.show(me);                  // (4) z = X / w
    const Tensor loss = me.gradient();  //     g = grad F(z)
    me.local_step(flights_.x());        // (5) X <- X - eta u, unscaled; u, decay included, at z
    flights_.stepped(me);
    return loss;
  }

  void settle(Worker& me) override { flights_.meet(me); }
  void average(Worker& me) override { flights_.average(me); }
  void visit(Archive& a) override { flights_.visit(a); }
  Tensor contribution(Worker& me) override { return flights_.contribution(me); }

 private:
  Flights flights_;
};

}  // namespace

std::unique_ptr<Strategy> make_osgp(const Options& o, int world) {
  return with_exact_average<Osgp>(o, world, true);
}

}  // namespace skein::optim
