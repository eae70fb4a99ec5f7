// Exact averages over any gossip: --exact-every and --final-average.
#pragma once
#include <memory>

#include "optim/gossip/gossip.h"
#include "optim/strategy.h"

namespace skein::optim {

// An algorithm whose workers can also take the exact mean of their models.
class Gossiping : public Strategy {
 public:
  // All workers go on from the mean of their models and of what is on its way between them.
  // Collective, after settle().
  virtual void average(Worker&) = 0;
  double share_of_model(const Worker&) const override { return 0; }  // lr has been weighed (Model::kGossip)
};

// One whose workers gossip what lies in Worker::x.
class GossipingX : public Gossiping {
 public:
  void start(Worker& me) override { gossip_.start(me, me.x); }
  void average(Worker& me) override { gossip_.average(me, me.x); }
  void visit(Archive& a) override { gossip_.visit(a); }

 protected:
  // As Graph. With `symmetric`, BadOption unless the graph is: the name of the algorithm that needs it.
  GossipingX(const Options& o, int world, const std::string& topology, int peers,
             const char* symmetric = nullptr, int64_t every = 1)
      : gossip_(o, world, topology, peers, every) {
    if (symmetric) needs_symmetry(gossip_.graph(), symmetric);
  }
  Gossip gossip_;
};

// The same algorithm, whose workers take the exact mean of their models (average()) after every --exact-every
// local steps (Gossip-PGA: Chen et al., ICML 2021; 0: never) and, with --final-average (on), after the last
// step. Asynchronous workers wait for each other there.
std::unique_ptr<Strategy> with_exact_average(std::unique_ptr<Gossiping>, const Options&, int world,
                                             bool asynchronous = false);
template <class Algorithm>
std::unique_ptr<Strategy> with_exact_average(const Options& o, int world, bool asynchronous = false) {
  return with_exact_average(std::make_unique<Algorithm>(o, world), o, world, asynchronous);
}

}  // namespace skein::optim
