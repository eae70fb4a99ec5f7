// Overlap Stochastic Gradient Push.  Assran, Loizou, Ballas & Rabbat, ICML 2019, Algorithm 2.
//
//   X   biased parameters, the push-sum numerator        w   push-sum weight, starts at 1
//   z   X / w, the de-biased model; lives in me.x, where gradients are taken
//   s   --staleness: forwards for which a gossip may be late before it is waited for
#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"
#include "optim/gossip/exact_average.h"
#include "optim/gossip/flights.h"
#include "optim/order_log.h"

namespace skein::optim {
namespace {

class Osgp final : public Gossiping {
 public:
  Osgp(const Options& o, int world)
      : options_(o),
        s_(o.integer("staleness", 0, 0)),
        mixes_(buffer_policy(o) == BufferPolicy::kMix),
        flights_(o, world) {}

  void start(Worker& me) override {
    const int64_t n = me.x.size(), buffers = mixes_ ? me.buffers.size() : 0;
    all_ = Tensor({n + buffers}, kF32, me.x.device());
    x_ = all_.view({n});
    if (buffers > 0) b_ = all_.view({buffers}, n), scaled_copy(b_, 1.f, me.buffers);
    copy(x_, me.x);
    log_ = std::make_unique<OrderLog>(options_, text(me.comm.rank()));
  }

  Tensor iterate(Worker& me, int64_t) override {
    if (log_->replaying())
      replay(me);
    else
      gossip(me);
    log_->happened(kForward);
    met_ = false;
    scaled_copy(me.x, 1 / w_, x_);      // (4) z = X / w
    const Tensor loss = me.gradient();  //     g = grad F(z)
    me.local_step(x_);                  // (5) X <- X - eta u, unscaled; u, decay included, at z
    ++age_;
    if (!flights_.aloft()) scaled_copy(me.x, 1 / w_, x_);  // nothing is missing from it
    return loss;
  }

  // Workers that have come go on with (1)-(3), without forwards, as long as others may wait for their
  // gossips. With s = 0 all gossip equally often, so only what is asked for is sent: the next step's, which
  // then has it behind it.
  void settle(Worker& me) override {
    if (me.comm.size() == 1) return;
    const bool again = log_->replaying(), recorded = !again || (!log_->ended() && log_->next() == kMeeting);
    if (!recorded && !met_)
      throw Error(
          "--replay: the recorded run did not evaluate, save or stop at this step; replay it with the same "
          "--checkpoint-every, --eval-every and length");
    if (recorded) log_->happened(kMeeting);
    while (again && recorded && log_->next() != kMet) turn(me);
    flights_.meet(me, s_ > 0 && !again, [&] {
      if (again) return;
      turn(me);
      if (s_ == 0) ++ahead_;
    });
    if (recorded) log_->happened(kMet);
    met_ = true;
    double w = 0;
    const Tensor all = all_there_is(me, w);
    scaled_copy(me.x, 1 / w, all.view({me.x.size()}));  // the model as it is with what has come
  }

  void average(Worker& me) override {  // X <- mean X, w <- mean w, with what is on its way
    double sum = 0, w = 0;
    copy(all_, all_there_is(me, w));
    me.comm.mean(all_).wait();
    for (const auto& other : comm::gather_numbers(me.comm, {w})) sum += other[0];
    w_ = sum / me.comm.size();
    flights_.forget(me);
    age_ = ahead_ = 0;
    scaled_copy(me.x, 1 / w_, x_);
    if (b_) scaled_copy(me.buffers, 1 / w_, b_);
  }

  // The sum of w over workers and flights is n, so the mean of all X there is, is the model.
  Tensor contribution(Worker& me) override {
    double w = 0;
    return all_there_is(me, w).view({me.x.size()});
  }

  void visit(Archive& a) override {
    a("x", all_), a("w", w_), a("age", age_), a("ahead", ahead_);
    flights_.visit(a, all_);
    log_->visit(a);
  }

 private:
  // What is recorded: the number of a gossip when it starts, and
  enum Event : int64_t { kForward = -1, kMeeting = -2, kMet = -3 };

  void gossip(Worker& me) {
    if (ahead_ > 0) {
      --ahead_;
      return;
    }
    if (flights_.aloft() && age_ > s_) flights_.wait(me);  // (1) too late: wait; else leave it
    if (!flights_.aloft() || flights_.landed(me)) turn(me);
  }

  void turn(Worker& me) {
    if (flights_.aloft()) flights_.wait(me);  // is here already, but in a replay
    log_->happened(flights_.started());
    if (b_) scaled_copy(b_, w_, me.buffers);
    if (flights_.aloft()) flights_.absorb(me, all_, w_);  // (2) X += M, w += w_M
    flights_.start(me, all_, w_);                         // (3) X, w <- X, w / (p+1), and sends that share
    if (b_) scaled_copy(me.buffers, 1 / w_, b_);
    age_ = 0;
  }

  void replay(Worker& me) {
    while (log_->next() != kForward)
      if (log_->next() >= 0)
        turn(me);
      else
        log_->happened(log_->next());  // a meeting of the recorded run
  }

  // X and w with what has come and is not absorbed; after settle() that is all that was sent.
  Tensor all_there_is(const Worker& me, double& w) {
    if (!all_there_is_) all_there_is_ = all_.clone();
    if (b_) scaled_copy(b_, w_, me.buffers);
    copy(all_there_is_, all_);
    w = w_;
    flights_.add_to(me, all_there_is_, w);
    return all_there_is_;
  }

  const Options options_;
  const int64_t s_;
  const bool mixes_;
  Flights flights_;
  Tensor all_, x_, b_;   // X, and under `--bn-policy mix` w times the buffers behind it
  Tensor all_there_is_;  // scratch
  double w_ = 1;
  int64_t age_ = 0;    // forwards since the gossip aloft was started
  int64_t ahead_ = 0;  // steps whose (1)-(3) were done at a meeting
  bool met_ = true;    // and no step since: what was sent is here
  std::unique_ptr<OrderLog> log_;
};

}  // namespace

std::unique_ptr<Strategy> make_osgp(const Options& o, int world) {
  return with_exact_average(std::make_unique<Osgp>(o, world), o, world, true);
}

}  // namespace skein::optim
