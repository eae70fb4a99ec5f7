// Exchanges between pairs, beside the computation.
#include "optim/gossip/pairing.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "engine/vectors/vec.h"

namespace skein::optim {
namespace {

// A partner that has not answered by then is stopped or far behind. Steps go on without it until it answers.
constexpr auto kMoment = std::chrono::milliseconds(100);
constexpr const char* kGraph = "bipartite-exponential";

// An odd number of workers uses the graph of one more, whose last rank is missing. That rank is odd, so it
// would only ask others and is never asked.
int ranks_of_graph(const Options& o, int world) {
  const bool as_it_is = world == 1 || o.word("topology", kGraph).starts_with("file:");
  return as_it_is ? world : world + world % 2;
}

}  // namespace

Pairing::Pairing(const Options& o, int world)
    : options_(o),
      mixes_(buffer_policy(o) == BufferPolicy::kMix),
      graph_(o, ranks_of_graph(o, world), kGraph, 1,
             true) {  // on a ring that stands still it would always be the same pairs
  if (world > 1 && !graph_.pairs_odd_with_even())
    throw BadOption(
        "--topology " + graph_.name() +
        ": in ad-psgd every odd rank asks one even rank at a time; allowed are bipartite-exponential, "
        "bipartite-linear, ring and linear, with --peers 1");
}

void Pairing::start(Worker& me) {
  const int64_t n = me.x.size(), buffers = mixes_ ? me.buffers.size() : 0;
  all_ = Tensor({n + buffers}, kF32, me.x.device());
  x_ = all_.view({n});
  copy(x_, me.x);
  if (buffers > 0) b_ = all_.view({buffers}, n), copy(b_, me.buffers), buffers_before_ = me.buffers.clone();
  log_ = std::make_unique<OrderLog>(options_, text(me.comm.rank()));
  sent_ = all_.clone(), mean_ = all_.clone();
  active_ = me.comm.rank() % 2 == 1;
  other_ = me.comm.twin();
  if (active_)
    thread_ = comm::Thread([this] { exchange(); });
  else
    other_->on(kExchange, [this](const comm::Message& m) { serve(m); });
}

Pairing::~Pairing() {
  stop();
  other_.reset();  // ends the handler
}

void Pairing::stop() {
  stop_ = true;
  {
    const Lock lock(mutex_);
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// ---- the order of events ----------------------------------------------------------------------------------

template <class Ready>
void Pairing::until(Lock& lock, Ready ready) {
  const auto end = comm::after(deadline_);
  while (!ready()) {
    if (failed_) std::rethrow_exception(failed_);
    if (stop_) throw Error("ad-psgd has ended");
    changed_.sleep(lock, end);
    if (comm::Clock::now() >= end && !ready())
      throw Error(
          text("ad-psgd waited ", deadline_, " s for ",
               log_->replaying() ? text("event ", log_->next(), " of the recording") : "its partner"));
  }
}

bool Pairing::next_is(std::initializer_list<Event> events) const {
  return std::find(events.begin(), events.end(), log_->next()) != events.end();
}

// Threads have streams of their own. A thread waits for its stream before it releases the lock, so that the
// others find its work done.
void Pairing::finish_here() {
  if (!all_.device().is_host()) current_stream(all_.device()).sync();
}

// One event on x: at once, or, in a replay, when it is its turn.
template <class F>
void Pairing::in_turn(Lock& lock, Event event, F f) {
  if (log_->replaying()) until(lock, [&] { return next_is({event}); });
  log_->happened(event);
  f();
  finish_here();
  serve_waiting();
  changed_.notify_all();
}

// ---- the computing thread ---------------------------------------------------------------------------------

void Pairing::show(Worker& me) {
  copy(me.x, x_);
  if (b_) copy(me.buffers, b_), copy(buffers_before_, b_);
  stale_ = false;
}

void Pairing::snapshot(Worker& me) {
  Lock lock(mutex_);
  deadline_ = me.comm.options().deadline;
  if (failed_) std::rethrow_exception(failed_);
  open_ = true;
  met_ = false;
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

void Pairing::step(Worker& me) {
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
bool Pairing::ask(Worker& me) {
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
    asked_at_ = other_->transport().now();
  });
  return running_;
}

void Pairing::wait_a_moment() {
  Lock lock(mutex_);
  if (log_->replaying()) return;
  const double began = other_->transport().now();
  changed_.wait_until(lock, comm::Clock::now() + kMoment, [&] { return !running_ || failed_; });
  other_->meter().blocked("exchange", partner_, exchanges_ - 1, began, other_->transport().now());
}

void Pairing::exchange() {
  omp_set_num_threads(1);  // the other cores compute
  Lock lock(mutex_);
  try {
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || running_; });
      if (stop_) return;
      const int64_t number = exchanges_ - 1;
      const double began = asked_at_;
      lock.unlock();
      other_->push(partner_, kExchange, number, 1, sent_);
      std::optional<comm::Message> m;
      while (!m && !stop_) m = other_->take_within(0.02, partner_, kExchange, number);
      if (!m) return;
      other_->meter().transfer("exchange", began, m->arrived, m->bytes);
      take_mean(*m);
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

void Pairing::serve(comm::Message m) {
  omp_set_num_threads(1);
  const Lock lock(mutex_);
  waiting_.push_back(std::move(m));
  serve_waiting();
  changed_.notify_all();
}

// In order of arrival, or as recorded; any thread, under the lock.
void Pairing::serve_waiting() {
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
      other_->push(request.from, kExchange, request.step, 1, sent_);
    } catch (const comm::PeerLost&) { continue; }  // then nothing has happened to either
    last_[request.from] = request.step;
    take_mean(request);
    half_way(false);
    finish_here();
  }
}

// ---- both -------------------------------------------------------------------------------------------------

// y <- x as the other side will get it: rounded if it travels so, or the pair's sum would not be conserved.
void Pairing::as_sent(const Tensor& y, const Tensor& x, const comm::Communicator& c) const {
  copy(y, x);
  if (c.options().wire == kF32) return;
  const Tensor rounded(x.shape(), c.options().wire, x.device());
  copy(rounded, y), copy(y, rounded);
}

void Pairing::take_mean(const comm::Message& m) const {
  scaled_copy(mean_, 0.5f, sent_), axpy(mean_, 0.5f, other_->beside(mean_, m).payload);
}

// x <- x + (received - sent) / 2. If x is still what was sent, that is the mean of the two, with the same
// bits on both sides.
void Pairing::half_way(bool changed) {
  if (changed || other_->options().wire != kF32)
    axpy(all_, 1.f, mean_), axpy(all_, -1.f, sent_);
  else
    copy(all_, mean_);
  stale_ = true;
}

// Each worker comes when its own exchange is over. When all have come, no exchange is under way.
void Pairing::meet(Worker& me) {
  {
    Lock lock(mutex_);
    deadline_ = me.comm.options().deadline;
    until(lock, [&] { return !running_; });
    if (log_->replaying() && !met_)
      until(lock, [&] { return log_->ended() || (log_->next() < 0 && !next_is({kAnswered})); });
    if (log_->has_meeting(kMeeting, !met_)) in_turn(lock, kMeeting, [] {});
    open_ = true;
    serve_waiting();
  }
  meeting_.meet(me.comm, [] {});
  {
    const Lock lock(mutex_);
    open_ = false;
    met_ = true;
    show(me);
    finish_here();
  }
  me.comm.barrier();  // workers that go on send requests again
}

void Pairing::average(Worker& me) {
  const Lock lock(mutex_);
  me.comm.mean(all_).wait();
  show(me);
  finish_here();
}

// ---- a change of the membership ---------------------------------------------------------------------------

// The sum of x over the workers is only what it was if an exchange has happened to both of a pair or to
// neither. Who answers does its part at once, so it is up to those who ask: who answers tells them which
// exchange was its last.
void Pairing::end_exchanges() {
  stop();
  const Lock lock(mutex_);
  if (std::exchange(ended_, true)) return;
  open_ = false;
  if (running_) await_last_answer();
  for (comm::Rank r = 1; !active_ && r < other_->size(); r += 2) try {
      const auto last = last_.find(r);
      const int64_t number = last == last_.end() ? -1 : last->second;
      other_->push(r, kLast, 0, 1, Tensor::of<int64_t>({1}, {number}));
    } catch (const comm::PeerLost&) {  // a lost peer needs no answer
    }
}

// The partner comes here, too, and all wait for it, or it is lost.
void Pairing::await_last_answer() {
  const int64_t number = exchanges_ - 1;
  std::optional<comm::Message> last;
  for (const auto end = comm::after(other_->options().deadline); comm::Clock::now() < end;) {
    const bool alive = other_->membership().alive(other_->world_rank(partner_));
    if (const auto m = come(kExchange, number)) {
      take_mean(*m);
      half_way(stepped_);
      running_ = false;
      return;
    }
    if (!last) last = come(kLast, 0);
    if (!alive || (last && last->payload.data<int64_t>()[0] < number)) return;
    comm::nap(std::chrono::milliseconds(1));
  }
}

// Waits of this epoch have ended, but what has arrived is there.
std::optional<comm::Message> Pairing::come(comm::Tag tag, int64_t number) const {
  try {
    return other_->poll(partner_, tag, number);
  } catch (const comm::EpochEnds&) {
  } catch (const comm::PeerLost&) {}
  return {};
}

void Pairing::visit(Archive& a) {
  if (!a.loading() && other_->transport().mailbox().epoch_ends()) end_exchanges();
  const Lock lock(mutex_);
  a("x", all_), a("exchanges", exchanges_);
  log_->visit(a);
  if (a.loading()) finish_here();
  stale_ = true;
}

}  // namespace skein::optim
