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
  double lr = 0;             // the rate of this step, eta; set before iterate
  comm::Communicator& comm;  // the workers
  double share = 1;          // of all samples of this step, those of this worker; set before iterate
  // Draws the step's mini-batch, fills g at x and returns the mean loss (one element, on the device). Slices,
  // if given, are handed out on the way. It applies the loss scale and --clip-norm to g as it is at the end,
  // a gradient or a sum. After an overflow the rule does nothing in this step.
  std::function<Tensor(const Slices&)> oracle;
  double weight = 0;  // this worker's share of the global batch; 0 if all have the same

  Tensor gradient(const Slices& slices = {}) { return oracle(slices); }
  Tensor visible(const Shape&, DType) const;  // beside x, in memory that peers can see, if they can see any
  // y <- y - lr u(g), with weight decay at x, where g was taken; y may be x. Without samples in
  // this step: nothing.
  void local_step(const Tensor& y);
};

// Rules that every strategy keeps:
// - Options are read in the constructor.
// - State that the next step reads is visited, so that it can be saved and put back.
// - Where workers learn by themselves between two exchanges, it is an InRounds, too (optim/whole_step.h).
// - A step may take no gradient: the step's mini-batch is dropped.
// - iterate() may throw at any time, wherever it waits for a peer: WholeStep (optim/whole_step.h) puts back
//   what has been visited. Asynchronous workers end as they are. In rows with a center the others go on: what
//   a lost worker left with the center must count as a whole or not at all, and start(), settle() and
//   write_model() are called again, among fewer workers, if a loss interrupts them.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // Once, before the first step or before the state of a checkpoint is loaded. Collective.
  virtual void start(Worker&) {}
  virtual Tensor iterate(Worker& me, int64_t k) = 0;  // the loop body; returns the loss, on the device
  // Before anything that the workers do together between two steps (evaluation, checkpoint, end). It returns
  // when all workers have called it; from then on no algorithm sends, waits or writes `x` until the next
  // iterate(). What was under way has arrived and is part of visit(). Collective; it may wait as long as the
  // slowest worker takes.
  virtual void settle(Worker&) {}
  // After the last step, settled: ends what is still under way, and --final-average takes
  // the mean. Collective.
  virtual void finish(Worker&) {}
  virtual void visit(Archive&) {}  // the state of its own: anchors, weights, clocks
  // This worker's contribution to the model: unless there is a center, the model is the mean of them.
  virtual Tensor contribution(Worker& me) { return me.x; }
  // What it counts for in that mean; 0: as much as everybody's, which it is in all rows but those of kMean.
  virtual double share_of_model(const Worker& me) const { return me.weight; }
  // y <- the model that is evaluated and saved, with the same bits everywhere; y is no vector of the
  // strategy's own. Collective, after settle().
  virtual void write_model(Worker& me, const Tensor& y);
};

// How many steps the workers of a row can be apart between two meetings (Strategy::settle).
enum class Apart : uint8_t {
  kOne,   // every step is an exchange among all workers
  kSome,  // they gossip, or take steps alone between two exchanges
  kAny    // asynchronous: they meet only where settle() is called
};

// What the model of a run is, and what makes up for workers that have more samples than others.
enum class Model : uint8_t {
  kMean,  // the mean of the workers' models, weighed by Worker::weight
  // Their plain mean: instead, Worker::lr is weighed (the rate times weight times the number of workers).
  kGossip,
  kCenter  // a vector that worker 0 or a server keeps; lr is weighed. The others go on without a lost worker.
};

struct StrategyRow {
  const char* name;    // as on the command line: hyphens
  const char* source;  // citation
  bool mixes_only;     // with zero gradients the mean of the models is conserved and their spread shrinks
  bool world1_is_sgd;  // a world of one equals the plain rule, bit for bit
  Model model;         // what the model of a run is
  Apart apart;         // how many steps workers can be apart
  std::unique_ptr<Strategy> (*make)(const Options&, int world);
  bool codec;         // its messages can be coded (--wire int8, int4, topk)
  const char* flags;  // those that it reads and not all algorithms do; with ! if there is no default
  bool center() const { return model == Model::kCenter; }
  bool asynchronous() const { return apart == Apart::kAny; }
};
const std::vector<StrategyRow>& strategies();

// Both accept hyphens and underscores and throw BadOption that names the nearest valid name.
const StrategyRow& strategy_row(const std::string& name);
std::unique_ptr<Strategy> make_strategy(const std::string& name, const Options&, int world);
// Every option that the algorithm reads, with the value it will use. Throws what make_strategy throws.
Values values_in_force(const std::string& name, Options, int world);

}  // namespace skein::optim
