// Asynchronous decentralized parallel SGD.  Lian, Zhang, Zhang & Liu, ICML 2018, Algorithm 1.
//
//   x   model of this worker, which its partners average while it computes      odd ranks are active: they ask
//   me.x   a snapshot of it, where the gradient is taken                        even ranks are passive: they answer
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/vec.h"
#include "optim/exact_average.h"
#include "optim/gossip.h"
#include "optim/order_log.h"

namespace skein::optim {
namespace {

class AdPsgd final : public Strategy {
 public:
  AdPsgd(const Options& o, int world)
      : options_(o),
        alone_(world == 1),
        mixes_(buffer_policy(o) == BufferPolicy::kMix),
        graph_(o, world, "bipartite-exponential", 1) {
    if (!graph_.pairs_odd_with_even())
      throw BadOption(
          "--topology " + graph_.name() +
          ": in ad-psgd every odd rank asks one even rank at a time; allowed are bipartite-exponential, "
          "bipartite-linear, ring and linear, with --peers 1 and an even number of workers");
  }
  ~AdPsgd() override;

  void start(Worker& me) override;

  Tensor iterate(Worker& me, int64_t) override {
    take_snapshot(me);
    const bool asked = ask(me);         // x sets out to a partner; meanwhile
    const Tensor loss = me.gradient();  // g = grad F(snapshot), and others may average x
    if (asked) wait_a_moment();         // for that partner and nobody else
    step(me);                           // x <- x - eta u: x as it is now, u at the snapshot
    return loss;
  }

  void settle(Worker& me) override;

  void average(Worker& me) override {
    const Lock lock(mutex_);
    exact_mean(me.comm, all_);
    show(me);
  }

  void visit(Archive& a) override {
    const Lock lock(mutex_);
    a("x", all_), a("exchanges", exchanges_);
    log_->visit(a);
    stale_ = true;
  }
  Tensor averaged(Worker&) override { return x_; }  // after settle()

 private:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr comm::Tag kExchange = 1, kCome = 3;
  // A partner that has not answered by then is stopped or far behind: on without it, until it does.
  static constexpr auto kMoment = std::chrono::milliseconds(100);
  // What happens to x, in its order: an exchange served is the rank that asked, and
  enum Event : int64_t { kSnapshot = -1, kStep = -2, kAsked = -3, kAnswered = -4, kMeeting = -5 };

  void take_snapshot(Worker&);
  bool ask(Worker&);
  void wait_a_moment();
  void step(Worker&);
  void show(Worker&);
  void exchange();            // the active side's own thread
  void serve(comm::Message);  // the passive side's
  void serve_waiting();
  void as_sent(const Tensor& y, const Tensor& x, const comm::Communicator&) const;
  void half_way(bool changed);
  template <class Ready>
  void until(Lock&, Ready);
  template <class F>
  void in_turn(Lock&, Event, F);
  bool next_is(std::initializer_list<Event>) const;

  const Options options_;
  const bool alone_, mixes_;
  Graph graph_;
  Meeting meeting_{kCome};
  bool active_ = false;
  double deadline_ = 60;
  std::unique_ptr<comm::Communicator> other_;  // of the other thread: the handler's or exchange()'s
  std::thread thread_;
  std::atomic<bool> stop_{false};
  Tensor buffers_before_;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  Tensor all_, x_, b_;     // x, and under `--bn-policy mix` the buffers behind it
  Tensor sent_, mean_;     // of the exchange on its way
  bool stale_ = true;      // x is not what me.x shows
  bool open_ = false;      // partners are served: from an iterate to the next meeting
  bool running_ = false;   // an exchange is on its way
  bool stepped_ = false;   // x has changed since it was sent
  int64_t exchanges_ = 0;  // asked for so far: chooses the next partner
  comm::Rank partner_ = 0;
  std::deque<comm::Message> waiting_;  // requests not served yet
  std::exception_ptr failed_;          // what ended exchange()
  std::unique_ptr<OrderLog> log_;
};

void AdPsgd::start(Worker& me) {
  const int64_t n = me.x.size(), buffers = mixes_ ? me.buffers.size() : 0;
  all_ = Tensor({n + buffers}, kF32, me.x.device());
  x_ = all_.view({n});
  copy(x_, me.x);
  if (buffers > 0) b_ = all_.view({buffers}, n), copy(b_, me.buffers), buffers_before_ = me.buffers.clone();
  log_ = std::make_unique<OrderLog>(options_, text(me.comm ? me.comm->rank() : 0));
  if (alone_) return;
  sent_ = all_.clone(), mean_ = all_.clone();
  active_ = me.comm->rank() % 2 == 1;
  other_ = me.comm->twin();
  if (active_)
    thread_ = std::thread([this] { exchange(); });
  else
    other_->on(kExchange, [this](const comm::Message& m) { serve(m); });
}

AdPsgd::~AdPsgd() {
  stop_ = true;
  {
    const Lock lock(mutex_);
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  other_.reset();  // ends the handler
}

// ---- the order of events ----------------------------------------------------------------------------------

template <class Ready>
void AdPsgd::until(Lock& lock, Ready ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(deadline_, 1e8));
  while (!ready()) {
    if (failed_) std::rethrow_exception(failed_);
    if (stop_) throw Error("ad-psgd has ended");
    if (changed_.wait_until(lock, end) == std::cv_status::timeout && !ready())
      throw Error(
          text("ad-psgd waited ", deadline_, " s for ",
               log_->replaying() ? text("event ", log_->next(), " of the recording") : "its partner"));
  }
}

bool AdPsgd::next_is(std::initializer_list<Event> events) const {
  return std::find(events.begin(), events.end(), log_->next()) != events.end();
}

// One event on x: at once, or, in a replay, when it is its turn.
template <class F>
void AdPsgd::in_turn(Lock& lock, Event event, F f) {
  if (log_->replaying()) until(lock, [&] { return next_is({event}); });
  log_->happened(event);
  f();
  if (all_.device().is_cuda()) current_stream(all_.device()).sync();  // other threads have other streams
  serve_waiting();
  changed_.notify_all();
}

// ---- one's own steps --------------------------------------------------------------------------------------

void AdPsgd::show(Worker& me) {
  copy(me.x, x_);
  if (b_) copy(me.buffers, b_), copy(buffers_before_, b_);
  stale_ = false;
}

void AdPsgd::take_snapshot(Worker& me) {
  if (alone_) return;
  Lock lock(mutex_);
  deadline_ = me.comm->options().deadline;
  if (failed_) std::rethrow_exception(failed_);
  open_ = true;
  serve_waiting();
  while (log_->replaying()) {
    until(lock, [&] { return next_is({kSnapshot, kMeeting}); });
    if (next_is({kSnapshot})) break;
    log_->happened(kMeeting);  // only the recorded run met here
    serve_waiting();
  }
  in_turn(lock, kSnapshot, [&] {
    if (stale_) show(me);
  });
}

void AdPsgd::step(Worker& me) {
  if (alone_) return me.local_step(me.x);
  Lock lock(mutex_);
  in_turn(lock, kStep, [&] {
    me.local_step(x_);
    stepped_ = true;
    if (b_) axpy(b_, 1.f, me.buffers), axpy(b_, -1.f, buffers_before_);
    show(me);
  });
}

// ---- the active side --------------------------------------------------------------------------------------

// Begins an exchange, unless the last one is still on its way.
bool AdPsgd::ask(Worker& me) {
  if (!active_) return false;
  Lock lock(mutex_);
  if (log_->replaying()) {
    until(lock, [&] { return next_is({kAsked, kStep}); });
    if (!next_is({kAsked})) return false;
  } else if (running_) {
    return false;
  }
  in_turn(lock, kAsked, [&] {
    const comm::Mix p = graph_.at(me, exchanges_++);
    if (p.out.empty()) return;
    partner_ = p.out[0].peer;
    as_sent(sent_, all_, *other_);
    stepped_ = false;
    running_ = true;
  });
  return running_;
}

void AdPsgd::wait_a_moment() {
  Lock lock(mutex_);
  if (!log_->replaying()) changed_.wait_for(lock, kMoment, [&] { return !running_ || failed_; });
}

void AdPsgd::exchange() {
  omp_set_num_threads(1);  // the other cores compute
  Lock lock(mutex_);
  try {
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || running_; });
      if (stop_) return;
      const int64_t number = exchanges_ - 1;
      lock.unlock();
      other_->push(partner_, kExchange, number, 1, sent_);
      std::optional<comm::Message> m;
      while (!m && !stop_) m = other_->take_within(0.02, partner_, kExchange, number);
      if (stop_) return;
      scaled_copy(mean_, 0.5f, sent_), axpy(mean_, 0.5f, m->payload);
      lock.lock();
      in_turn(lock, kAnswered, [&] {
        half_way(stepped_);
        running_ = false;
      });
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    failed_ = std::current_exception();
    changed_.notify_all();
  }
}

// ---- the passive side -------------------------------------------------------------------------------------

void AdPsgd::serve(comm::Message m) {
  omp_set_num_threads(1);
  const Lock lock(mutex_);
  waiting_.push_back(std::move(m));
  serve_waiting();
  changed_.notify_all();
}

// In order of arrival, or as recorded; any thread, under the lock.
void AdPsgd::serve_waiting() {
  while (open_ && !waiting_.empty()) {
    auto m = waiting_.begin();
    if (log_->replaying()) {
      if (log_->ended()) return;
      m = std::find_if(m, waiting_.end(), [&](const comm::Message& w) { return w.from == log_->next(); });
    }
    if (m == waiting_.end()) return;
    const comm::Message request = std::move(*m);
    waiting_.erase(m);
    log_->happened(request.from);
    as_sent(sent_, all_, *other_);
    try {
      other_->answer(request, sent_);
    } catch (const comm::PeerLost&) { continue; }  // then nothing has happened to either
    scaled_copy(mean_, 0.5f, sent_), axpy(mean_, 0.5f, request.payload);
    half_way(other_->options().wire != kF32);
    if (all_.device().is_cuda()) current_stream(all_.device()).sync();
  }
}

// ---- both -------------------------------------------------------------------------------------------------

// y <- x as the other side will get it: rounded if it travels so, or the pair's sum would not be conserved.
void AdPsgd::as_sent(const Tensor& y, const Tensor& x, const comm::Communicator& c) const {
  copy(y, x);
  if (c.options().wire == kF32) return;
  const Tensor rounded(x.shape(), c.options().wire, x.device());
  copy(rounded, y), copy(y, rounded);
}

// x <- x + (received - sent) / 2. Where x is what was sent that is the mean of the two, the same bits on both sides.
void AdPsgd::half_way(bool changed) {
  if (changed)
    axpy(all_, 1.f, mean_), axpy(all_, -1.f, sent_);
  else
    copy(all_, mean_);
  stale_ = true;
}

// Whoever has come goes on answering until all have come, each with no exchange of its own on its way. Then none is.
void AdPsgd::settle(Worker& me) {
  if (alone_) return;
  {
    Lock lock(mutex_);
    deadline_ = me.comm->options().deadline;
    open_ = true;
    serve_waiting();
    until(lock, [&] { return !running_; });
    if (log_->replaying()) {
      until(lock, [&] { return log_->ended() || (log_->next() < 0 && !next_is({kAnswered})); });
      if (log_->ended() || !next_is({kMeeting}))
        throw Error(
            "--replay: the recorded run did not evaluate, save or stop at this step; replay it with the same "
            "--checkpoint-every, --eval-every and length");
    }
    in_turn(lock, kMeeting, [] {});
  }
  meeting_.meet(*me.comm, [] {});
  {
    const Lock lock(mutex_);
    open_ = false;
    show(me);
  }
  me.comm->barrier();  // whoever goes on asks again
}

}  // namespace

std::unique_ptr<Strategy> make_ad_psgd(const Options& o, int world) {
  return with_exact_average(std::make_unique<AdPsgd>(o, world), o, world, true);
}

}  // namespace skein::optim
