// Exchanges between pairs, beside the computation.
#include "optim/gossip/pairing.h"

#include <omp.h>

#include <algorithm>
#include <utility>

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
      graph_(o, ranks_of_graph(o, world), kGraph, 1,
             true) {  // on a ring that stands still it would always be the same pairs
  if (world > 1 && !graph_.pairs_odd_with_even())
    throw BadOption(
        "--topology " + graph_.name() +
        ": in ad-psgd every odd rank asks one even rank at a time; allowed are bipartite-exponential, "
        "bipartite-linear, ring and linear, with --peers 1");
  if (world > 1) EdgeCopies::refuse_mixed_buffers(o, "ad-psgd");
}

void Pairing::start(Worker& me) {
  model_.emplace(me, options_, graph_);
  order_.open(options_, text(me.comm.rank()));
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
  order_.stop();
  if (thread_.joinable()) thread_.join();
}

// ---- the order of events ----------------------------------------------------------------------------------

// One event on x: at once, or, in a replay, when it is its turn.
template <class F>
void Pairing::in_turn(Lock& lock, Event event, F f) {
  order_.begin(lock, event);
  f();
  model_->finish();
  serve_waiting();
  order_.notify();
}

// ---- the computing thread ---------------------------------------------------------------------------------

void Pairing::snapshot(Worker& me) {
  Lock lock = order_.lock();
  order_.set_deadline(me.comm.options().deadline);
  order_.rethrow_failure();
  served_.open = true;
  met_ = false;
  serve_waiting();
  while (order_.log().replaying()) {
    order_.until(lock, [&] { return order_.next_is({kSnapshot, kMeeting}); });
    if (order_.next_is({kSnapshot})) break;
    order_.log().happened(kMeeting);  // only the recorded run met here
    serve_waiting();
  }
  in_turn(lock, kSnapshot, [&] {
    if (!model_->is_shown()) model_->show(me);
  });
}

void Pairing::step(Worker& me) {
  Lock lock = order_.lock();
  in_turn(lock, kStep, [&] { model_->step(me); });
}

// ---- the active side --------------------------------------------------------------------------------------

// Begins an exchange, unless the last one is still on its way.
bool Pairing::ask(Worker& me) {
  if (!active_) return false;
  Lock lock = order_.lock();
  if (order_.log().replaying()) {
    order_.until(lock, [&] { return order_.next_is({kAsked, kStep}); });
    if (!order_.next_is({kAsked})) return false;
  } else if (asked_.waits) {
    return false;
  }
  in_turn(lock, kAsked, [&] {
    const comm::Mix p = graph_.at(me, asked_.count++);
    if (p.out.empty()) return;
    asked_.partner = p.out[0].peer;
    model_->begin_exchange(*other_, asked_.partner);
    asked_.waits = true;
    asked_.at = other_->transport().now();
  });
  return asked_.waits;
}

void Pairing::wait_a_moment() {
  Lock lock = order_.lock();
  if (order_.log().replaying()) return;
  const double began = other_->transport().now();
  order_.wait_until(lock, comm::Clock::now() + kMoment, [&] { return !asked_.waits; });
  other_->meter().blocked("exchange", asked_.partner, asked_.count - 1, began, other_->transport().now());
}

void Pairing::exchange() {
  omp_set_num_threads(1);  // the other cores compute
  Lock lock = order_.lock();
  try {
    for (;;) {
      order_.wait_until(lock, comm::Clock::time_point::max(), [&] { return asked_.waits; });
      if (order_.stopped()) return;
      const Asked asked = asked_;
      const int64_t number = asked.count - 1;
      lock.unlock();
      other_->push(asked.partner, kExchange, number, 1, model_->payload());
      std::optional<comm::Message> m;
      while (!m && !order_.stopped()) m = other_->take_within(0.02, asked.partner, kExchange, number);
      if (!m) return;
      other_->meter().transfer("exchange", asked.at, m->arrived, m->bytes);
      model_->receive(*m, *other_);
      lock.lock();
      in_turn(lock, kAnswered, [&] {
        model_->go_half_way(*other_);
        asked_.waits = false;
      });
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    order_.fail(std::current_exception());
  }
}

// ---- the passive side -------------------------------------------------------------------------------------

void Pairing::serve(comm::Message m) {
  omp_set_num_threads(1);
  const Lock lock = order_.lock();
  served_.waiting.push_back(std::move(m));
  serve_waiting();
  order_.notify();
}

// In order of arrival, or as recorded; any thread, under the lock.
void Pairing::serve_waiting() {
  while (served_.open && !served_.waiting.empty()) {
    auto m = served_.waiting.begin();
    if (order_.log().replaying()) {
      if (order_.log().ended()) return;
      m = std::find_if(m, served_.waiting.end(),
                       [&](const comm::Message& w) { return w.from == order_.log().next(); });
    }
    if (m == served_.waiting.end()) return;
    const comm::Message request = std::move(*m);
    served_.waiting.erase(m);
    order_.log().happened(request.from);
    model_->begin_exchange(*other_, request.from);
    try {
      other_->push(request.from, kExchange, request.step, 1, model_->payload());
    } catch (const comm::PeerLost&) { continue; }  // then nothing has happened to either
    served_.last[request.from] = request.step;
    model_->receive(request, *other_);
    model_->go_half_way(*other_);
    model_->finish();
  }
}

// ---- both -------------------------------------------------------------------------------------------------

// Each worker comes when its own exchange is over. When all have come, no exchange is under way.
void Pairing::meet(Worker& me) {
  {
    Lock lock = order_.lock();
    order_.set_deadline(me.comm.options().deadline);
    order_.until(lock, [&] { return !asked_.waits; });
    if (order_.log().replaying() && !met_)
      order_.until(lock, [&] {
        return order_.log().ended() || (order_.log().next() < 0 && !order_.next_is({kAnswered}));
      });
    if (order_.log().has_meeting(kMeeting, !met_)) in_turn(lock, kMeeting, [] {});
    served_.open = true;
    serve_waiting();
  }
  meeting_.meet(me.comm, [] {});
  {
    const Lock lock = order_.lock();
    served_.open = false;
    met_ = true;
    model_->show(me);
    model_->finish();
  }
  me.comm.barrier();  // workers that go on send requests again
}

void Pairing::average(Worker& me) {
  const Lock lock = order_.lock();
  model_->mean(me.comm);
  model_->show(me);
  model_->finish();
}

// ---- a change of the membership ---------------------------------------------------------------------------

// The sum of x over the workers is only what it was if an exchange has happened to both of a pair or to
// neither. Who answers does its part at once, so it is up to those who ask: who answers tells them which
// exchange was its last.
void Pairing::end_exchanges() {
  stop();
  const Lock lock = order_.lock();
  if (std::exchange(ended_, true)) return;
  served_.open = false;
  if (asked_.waits) await_last_answer();
  for (comm::Rank r = 1; !active_ && r < other_->size(); r += 2) try {
      const auto last = served_.last.find(r);
      const int64_t number = last == served_.last.end() ? -1 : last->second;
      other_->push(r, kLast, 0, 1, Tensor::of<int64_t>({1}, {number}));
    } catch (const comm::PeerLost&) {  // a lost peer needs no answer
    }
}

// The partner comes here, too, and all wait for it, or it is lost.
void Pairing::await_last_answer() {
  const int64_t number = asked_.count - 1;
  std::optional<comm::Message> last;
  for (const auto end = comm::after(other_->options().deadline); comm::Clock::now() < end;) {
    const bool alive = other_->membership().alive(other_->world_rank(asked_.partner));
    if (const auto m = come(kExchange, number)) {
      model_->receive(*m, *other_);
      model_->go_half_way(*other_);
      asked_.waits = false;
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
    return other_->poll(asked_.partner, tag, number);
  } catch (const comm::EpochEnds&) {
  } catch (const comm::PeerLost&) {}
  return {};
}

void Pairing::visit(Archive& a) {
  if (!a.loading() && other_->transport().mailbox().epoch_ends()) end_exchanges();
  const Lock lock = order_.lock();
  model_->visit(a), a("exchanges", asked_.count);
  order_.log().visit(a);
  if (a.loading()) model_->finish();
}

}  // namespace skein::optim
