// Gossip until it is close enough.
#include "comm/averaging.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/nearest.h"

namespace skein::comm {
namespace {

constexpr Tag kShare = 1, kPair = 2;

// One vector on its way to the mean: X and w, of which X / w is the estimate.
class Averager {
 public:
  Averager(Communicator& comm, const Topology* graph, const Tensor& x, Averaging algorithm)
      : comm_(comm), graph_(graph), x_(x), mean_({x.size()}, kF32, comm.allocator()), algorithm_(algorithm) {
    exact_mean(mean_, x_);
  }

  void round(int64_t q) {
    if (algorithm_ == Averaging::kAllReduce) return exact_mean(x_, x_);
    const Mix p = in_fp32(graph_->at(comm_.rank(), q));
    if (algorithm_ == Averaging::kPairwise) {
      if (!p.out.empty()) comm_.average_with(p.out[0].peer, x_, kPair, q);
    } else {
      push_sum(p, q);
    }
  }

  double weight() const { return w_; }
  void divide() {
    scale(x_, 1 / w_);
    w_ = 1;
  }
  // Of the estimate; collective.
  double error() const {
    double worst = 0;
    const float* x = x_.data<float>();
    const float* m = mean_.data<float>();
    const double w = w_;
#pragma omp parallel for reduction(max : worst)
    for (int64_t i = 0; i < x_.size(); ++i) {
      const double off = std::abs(double(x[i]) / w - m[i]);
      if (!(off <= worst)) worst = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
    }
    for (const auto& other : gather_numbers(comm_, {worst})) worst = std::max(worst, other[0]);
    return worst;
  }

 private:
  void exact_mean(const Tensor& y, const Tensor& x) {
    if (&y != &x) copy(y, x);
    comm_.all_reduce(y).wait();
    scale(y, 1.0 / comm_.size());
  }

  void push_sum(const Mix& p, int64_t q) {
    std::vector<Share> shares;
    for (const Edge& e : p.out) shares.push_back({e.peer, float(e.weight), e.weight * w_});
    if (!shares.empty()) comm_.push(shares, kShare, q, x_);
    scale(x_, p.self);
    w_ *= p.self;
    for (const Edge& e : p.in) {
      const Message m = comm_.take(e.peer, kShare, q, x_);
      axpy(x_, 1.f, m.payload);
      w_ += m.weight;
    }
  }

  Communicator& comm_;
  const Topology* graph_;
  const Tensor x_, mean_;
  const Averaging algorithm_;
  double w_ = 1;
};

void refuse_all_but_pairs(const Topology& graph) {
  bool pairs = graph.symmetric();
  for (int64_t q = 0; q < std::max<int64_t>(1, graph.cycle()) && pairs; ++q)
    for (Rank r = 0; r < graph.size(); ++r) {
      const Mix m = graph.at(r, q);
      pairs = pairs && m.out.size() <= 1 && (m.out.empty() || m.self == 0.5);
    }
  if (!pairs)
    throw BadOption(
        "--algorithm pairwise needs a graph of pairs: allowed are --topology bipartite-exponential, "
        "bipartite-linear (an even number of workers) and random, with --peers 1");
}

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

Averaging parse_averaging(const std::string& name) {
  if (name == "push-sum" || name == "push_sum") return Averaging::kPushSum;
  if (name == "pairwise") return Averaging::kPairwise;
  if (name == "allreduce") return Averaging::kAllReduce;
  throw BadOption("--algorithm " + name + ": there is no such way of averaging; did you mean " +
                  nearest(name, {"push-sum", "pairwise", "allreduce"}) +
                  "? Known: push-sum pairwise allreduce");
}

std::vector<std::vector<double>> gather_numbers(Communicator& comm, const std::vector<double>& mine) {
  const int64_t each = int64_t(mine.size());
  const Tensor words({each}, kI64), all({comm.size() * each}, kI64);  // bits of doubles: never added up
  memcpy(words.raw(), mine.data(), size_t(words.bytes()));
  const std::vector<Tensor> gathered = comm.gather(words, 0);
  for (size_t r = 0; r < gathered.size(); ++r) copy_bytes(all.view({each}, int64_t(r) * each), gathered[r]);
  comm.broadcast(all, 0);
  std::vector<std::vector<double>> numbers(size_t(comm.size()), std::vector<double>(mine.size()));
  for (size_t r = 0; r < numbers.size(); ++r)
    memcpy(numbers[r].data(), all.data<int64_t>() + int64_t(r) * each, size_t(words.bytes()));
  return numbers;
}

AveragingResult average(Communicator& comm, const Topology* graph, const Tensor& x,
                        const AveragingOptions& o) {
  if (o.algorithm != Averaging::kAllReduce)
    CHECK(graph && graph->size() == comm.size(), "a graph of this world");
  if (o.algorithm == Averaging::kPairwise) refuse_all_but_pairs(*graph);
  Averager a(comm, graph, x, o.algorithm);
  AveragingResult result;
  const auto step = [&] {
    const auto began = Clock::now();
    a.round(result.rounds++);
    result.seconds += seconds_since(began);
  };
  if (o.rounds > 0) {
    while (result.rounds < o.rounds) step();
    result.error = a.error();
  } else {
    // Rounding ends progress somewhere: give up when many rounds bring nothing.
    const int64_t patience = 50 + 20 * (graph ? std::max<int64_t>(graph->cycle(), comm.size()) : 1);
    double best = result.error = a.error();
    for (int64_t best_at = 0; result.error > o.tolerance;) {
      if (result.rounds >= o.most_rounds || result.rounds - best_at > patience)
        throw Error(text("--tolerance ", o.tolerance, " is out of reach: after ", result.rounds,
                         " rounds the largest distance from the mean is ", best,
                         "; fp32 or this graph comes no closer"));
      step();
      result.error = a.error();
      if (result.error < best) best = result.error, best_at = result.rounds;
    }
  }
  result.weight = a.weight();
  a.divide();
  return result;
}

}  // namespace skein::comm
