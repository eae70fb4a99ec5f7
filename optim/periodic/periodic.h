// What periodic averaging shares: the period, the step at which all meet, and a mean that travels meanwhile.
#pragma once
#include "comm/communicator/communicator.h"
#include "optim/strategy.h"
#include "optim/whole_step.h"

namespace skein::optim {

// --tau: local step k + 1 is the last of its round where (k + 1) mod tau == 0.
class Period {
 public:
  explicit Period(const Options& o, int64_t otherwise = 4) : steps_(o.integer("tau", otherwise, 1)) {}
  bool ends(int64_t k) const { return (k + 1) % steps_ == 0; }
  bool begins(int64_t k) const { return k % steps_ == 0; }
  int64_t of(int64_t k) const { return k / steps_; }  // the round of step k, from 0
  int64_t steps() const { return steps_; }

 private:
  const int64_t steps_;
};

// The means over the workers, by Worker::weight; or nothing. The memory belongs to the Round or Flight that
// made them. That of a Round the caller may write.
struct Means {
  explicit operator bool() const { return bool(x); }
  Tensor x;
  Tensor buffers;  // of the running statistics; empty unless --bn-policy mix
  // Running statistics become the mean itself, since momentum or a difference could make a variance negative.
  void give_buffers(Worker& me) const {
    if (buffers) copy(me.buffers, buffers);
  }
};

comm::Pending mean_of(Worker&, const Tensor& x);  // x <- the mean over the workers, by Worker::weight

// The mean of a vector over the workers. With a codec, differences travel from what all workers had in common
// last: from the anchor, a vector that is equal on all of them whenever a mean begins, or without one from
// the last mean. Running statistics are never coded.
class Average {
 public:
  explicit Average(const Options&);  // --wire
  // Call it before the first mean. `like` is what is averaged; without an anchor it must be equal
  // on all workers.
  void start(Worker&, const Tensor& like, const Tensor& anchor = {});
  // Starts mean <- its mean over the workers. It holds elements [begin, begin + mean.size()) of the vector.
  // When it has been waited for, end() completes it. No mean of the same elements may be under way.
  comm::Pending begin(Worker&, const Tensor& mean, int64_t begin = 0);
  void end(const Tensor& mean, int64_t begin = 0);
  // Replaces begin() and end() if the mean is known already.
  void skip(const Tensor& mean);
  void leave();                  // abandons what is under way, which may still write its memory
  void visit(Archive&);          // the residuals and common vectors, as before the mean that is under way
  void visit_arrived(Archive&);  // the same, after it

 private:
  Tensor window(const Tensor& of, const Tensor& like, int64_t begin) const {
    return of.view(like.shape(), begin);
  }
  Codec codec_;
  Tensor common_, residual_, working_;  // empty without a codec; working_: the residual of means under way
  bool own_common_ = false;
};

// Local steps in rounds; at the end of a round all workers wait for each other.
class Round {
 public:
  explicit Round(const Options&, int64_t tau = 4);  // --tau, --bn-policy, --wire
  // Call it before the first step. `anchor` is a vector of the algorithm that is equal on all workers at the
  // end of every round, if there is one.
  void start(Worker& me, const Tensor& anchor = {}) { average_.start(me, me.x, anchor); }
  void visit(Archive& a) { average_.visit(a); }
  // x_i <- x_i - eta u_i. If step k is the last of its round, this is collective: running statistics become
  // their mean, and that of x is returned, which the caller writes to x or not. Otherwise it returns nothing.
  Tensor step(Worker& me, int64_t k) { return step_of(me, period_.ends(k)); }
  // The same for rounds of other lengths.
  Tensor step_of(Worker&, bool is_last);
  // step() where the caller has moved x already.
  Tensor meet(Worker&, int64_t k);
  // step() that leaves the running statistics as they are, and returns their mean as well.
  Means means(Worker&, int64_t k);
  // The last step of a round, and the mean of elements [begin, end) only.
  Means last_step(Worker&, int64_t begin, int64_t end, bool with_buffers);
  int64_t tau() const { return period_.steps(); }
  bool begins(int64_t k) const { return period_.begins(k); }
  int64_t of(int64_t k) const { return period_.of(k); }

 private:
  Means exchange(Worker&, int64_t begin, int64_t end, bool with_buffers);

  const Period period_;
  const bool mixes_;
  Average average_;
  Means mean_;
};

// A strategy that takes steps in rounds. If it keeps an anchor, its start() passes that to the round.
class Periodic : public Strategy, public InRounds {
 public:
  void start(Worker& me) override { round_.start(me); }
  Shared shared() override {
    return {.is = [this](int64_t k) { return round_.begins(k); }, .arrived = {}};
  }
  void visit(Archive& a) override { round_.visit(a); }

 protected:
  explicit Periodic(const Options& o, int64_t tau = 4) : round_(o, tau) {}
  Round round_;
};

// A strategy whose workers share an anchor z, where all begin a round, and a momentum m of how it moves.
class Anchored : public Periodic {
 public:
  void start(Worker& me) override { begin_at(me), round_.start(me, z_); }
  void visit(Archive& a) override { visit_anchor(a), Periodic::visit(a); }

 protected:
  // `momentum` is the name of m in checkpoints.
  explicit Anchored(const Options& o, int64_t tau = 4, const char* momentum = "m")
      : Periodic(o, tau), momentum_(momentum) {}
  void begin_at(Worker& me) { z_ = me.x.clone(), m_ = Tensor::zeros(z_.shape(), kF32, z_.device()); }
  void visit_anchor(Archive& a) { a("z", z_), a(momentum_, m_); }
  Tensor z_, m_;

 private:
  const char* const momentum_;
};

// A mean on its way while the next steps compute; it moves in Communicator::progress().
//
// Its state is what this worker gave and whether that is under way, so visit() never waits. The sum begins
// with the next iterate, at the same place among the collectives of every worker. After a load it begins
// again, with the same numbers in the same order; unless the state was completed with the mean that had
// arrived (visit_arrived()), which then waits for land(): so what lost workers gave still counts. A sum that
// a load finds under way is abandoned: since all workers load or none does, they still agree on their next
// collective. Its memory, which peers may still write, is never used again.
class Flight {
 public:
  explicit Flight(const Options&, bool with_buffers = true);  // --bn-policy, --wire
  ~Flight();
  Flight(const Flight&) = delete;
  // Call it once. `anchor` as for Round, equal whenever a mean begins.
  void start(Worker&, const Tensor& like, const Tensor& anchor = {});

  void carry_on(Worker&);  // to be called first in every iterate
  // Waits for the mean, which stays as it is until the next carry_on(); empty if nothing is under way.
  Means land();
  void set_out(Worker&, const Tensor& x);       // gives x, after land()
  const Tensor& own() const { return own_.x; }  // what was given last; may be written after land()
  void finish();                                // waits until no peer writes here any more
  void visit(Archive&);
  void visit_arrived(Archive&);  // names what has landed since the last carry_on(), if anything

 private:
  void leave();
  void visit_mean(Archive&, Means&);
  const bool mixes_;
  Average average_;
  Means own_, mean_, arrived_;   // arrived_: a mean that was loaded
  int64_t under_way_ = kAtHome;  // a Travel; kArrived: its mean is known already
  bool begun_ = false, others_write_ = false, landed_ = false;
  comm::Pendings means_;
};

// A strategy whose mean of a round travels during the next one.
class Overlapped : public Strategy, public InRounds {
 public:
  void start(Worker& me) override { flight_.start(me, me.x); }
  void finish(Worker&) override { flight_.finish(); }
  Shared shared() override {
    return {.is = [this](int64_t k) { return round_.begins(k); },
            .arrived =
                [this](Archive& a) {
                  Under flight(a, "flight.");
                  flight_.visit_arrived(flight);
                }};
  }
  void visit(Archive& a) override {
    Under flight(a, "flight.");
    flight_.visit(flight);
  }

 protected:
  explicit Overlapped(const Options& o, int64_t tau = 4) : round_(o, tau), flight_(o) {}
  const Period round_;
  Flight flight_;
};

// Slow momentum (Wang et al. 2020): m <- beta m + (z - mean x) / eta; z <- z - rate eta m. If eta = 0, z
// becomes the mean and m stays. Then x <- z, if x is given.
void slow_momentum(const Tensor& z, const Tensor& m, const Tensor& mean, double beta, double rate, double eta,
                   const Tensor& x = {});

}  // namespace skein::optim
