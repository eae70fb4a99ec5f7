// Plain stochastic gradient descent by one worker: the row every other one equals in a world of one.
#include "optim/strategy.h"

namespace skein::optim {
namespace {

class PlainSgd final : public Strategy {
 public:
  Tensor iterate(Worker& me, int64_t) override {
    const Tensor loss = me.gradient();  // g = dF(x; xi)
    me.rule.step(me.x, me.g, me.lr);    // x <- x - eta u(g)
    return loss;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_sgd(const Options&, int world) {
  if (world != 1)
    throw BadOption(text("--workers ", world,
                         " with --algorithm sgd: allowed is --workers 1, because sgd has no peers; "
                         "for several workers take another algorithm, e.g. --algorithm allreduce"));
  return std::make_unique<PlainSgd>();
}

}  // namespace skein::optim
