// A Strategy is one distributed algorithm: the loop body of its paper.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/archive.h"
#include "engine/tensor.h"
#include "optim/options.h"
#include "optim/rule.h"

namespace skein::comm {
class Communicator;
}

namespace skein::optim {

// Takes a gradient while backward still runs, so that its sum over the workers is under way meanwhile.
struct Slices {
  std::function<void(Tensor slice)> ready;  // called with each slice of g as soon as it is final here
  std::function<void()> complete;           // called after the last one; returns when all of g holds the sum
  explicit operator bool() const { return bool(ready); }
};

// One process as an algorithm sees it: a point, a gradient oracle, a local rule, and peers.
struct Worker {
  Tensor x;  // the point where the next gradient is taken; the parameters of the model are windows of it
  Tensor g;  // that gradient, in the same layout
  Tensor buffers;  // running statistics, one flat vector
  Rule& rule;
  double lr = 0;             // this step's rate, eta; set before iterate
  comm::Communicator& comm;  // the workers
  double share = 1;          // of all samples of this step, those of this worker; set before iterate
  // Draws the step's mini-batch, fills g at x and returns the mean loss (one element, on the device). Slices, if given,
  // are handed out on the way. It applies the loss scale and --clip-norm to g as it is at the end, a gradient or a sum.
  // After an overflow the rule does nothing in this step.
  std::function<Tensor(const Slices&)> oracle;
  comm::Communicator& hub = comm;  // with --servers dedicated: the workers and, last, the server
  double weight = 0;  // in means of models: this worker's share of the global batch; 0: all have the same
  double gain = 1;  // of its local steps, where means of models count all alike: the share times the workers
  std::function<void()> pass = {};  // drops the step's mini-batch; empty where the oracle is told the step

  Tensor no_gradient() const;  // to be called in a step without a gradient; returns 0, its loss
  Tensor gradient(const Slices& slices = {}) { return oracle(slices); }
  Tensor visible(const Shape&, DType) const;  // beside x, in memory that peers can see, if they can see any
  bool has_server() const { return &hub != &comm; }
  // y <- y - gain lr u(g), with weight decay at x, where g was taken; y may be x. Without samples in this step: nothing.
  void local_step(const Tensor& y);
};

// Rules that every strategy keeps:
// - Options are read in the constructor.
// - State that the next step reads is visited, so that it can be saved and put back.
// - iterate() may throw at any time, wherever it waits for a peer: WholeStep (optim/whole_step.h) puts back what has
//   been visited. Asynchronous workers end as they are. In rows with a center the others go on: what a lost worker left
//   with the center must count as a whole or not at all, and start(), settle() and write_model() are called again,
//   among fewer workers, if a loss interrupts them.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // Once, before the first step or before the state of a checkpoint is loaded. Collective.
  virtual void start(Worker&) {}
  virtual Tensor iterate(Worker& me, int64_t k) = 0;  // the loop body; returns the loss, on the device
  // Before anything that the workers do together between two steps (evaluation, checkpoint, end). It returns when all
  // workers have called it; from then on no algorithm sends, waits or writes `x` until the next iterate(). What was
  // under way has arrived and is part of visit(). Collective; it may wait as long as the slowest worker takes.
  virtual void settle(Worker&) {}
  // After the last step, settled: ends what is still under way, and --final-average takes the mean. Collective.
  virtual void finish(Worker&) {}
  virtual void visit(Archive&) {}  // the state of its own: anchors, weights, clocks
  // Whether the others have all that this worker learned before step k, or will when what travels has arrived.
  // visit_arrived() visits what arrived in the last step; Snapshot::complete() adds it to earlier states.
  virtual bool is_shared(int64_t) const { return true; }
  virtual bool has_travellers() const { return false; }
  virtual void visit_arrived(Archive&) {}
  virtual bool weighs_steps() const { return false; }  // means count all alike (gossip, a center): see gain
  virtual bool takes_codec() const { return false; }   // whether --wire int8, int4, topk can be used
  // This worker's contribution to the model: unless there is a center, the model is the mean of them.
  virtual Tensor contribution(Worker& me) { return me.x; }
  // y <- the model that is evaluated and saved, with the same bits everywhere; y is no vector of the strategy's own.
  // Collective, after settle().
  virtual void write_model(Worker& me, const Tensor& y);
};

// How many steps the workers of a row can be apart between two meetings (Strategy::settle).
enum class Apart : uint8_t {
  kOne,   // every step is an exchange among all workers
  kSome,  // they gossip, or take steps alone between two exchanges
  kAny    // asynchronous: they meet only where settle() is called
};

struct Served;  // served.h

struct StrategyRow {
  const char* name;    // as on the command line: hyphens
  const char* source;  // citation
  bool mixes_only;     // with zero gradients the mean of the models is conserved and their spread shrinks
  bool world1_is_sgd;  // a world of one equals the plain rule, bit for bit
  bool center;         // worker 0 or a server keeps the model; the others go on without a lost worker
  Apart apart;         // how many steps workers can be apart
  std::unique_ptr<Strategy> (*make)(const Options&, int world);
  // All that the last member of `hub` does with --servers dedicated; it returns when no worker is left, or the
  // membership changes. The strategy is one of this row, made but not started. Null if the algorithm has no server.
  void (*serve)(Strategy&, comm::Communicator& hub, Served&);
  const char* flags;  // those that it reads and not all algorithms do; with ! if there is no default
  bool asynchronous() const { return apart == Apart::kAny; }
};
const std::vector<StrategyRow>& strategies();

// Both accept hyphens and underscores and throw BadOption that names the nearest valid name.
const StrategyRow& strategy_row(const std::string& name);
std::unique_ptr<Strategy> make_strategy(const std::string& name, const Options&, int world);
// Every option that the algorithm reads, with the value it will use. Throws what make_strategy throws.
Values values_in_force(const std::string& name, Options, int world);

}  // namespace skein::optim
