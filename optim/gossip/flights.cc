// Gossips in the air, meetings at which all of them land, and the replay of their order.
#include "optim/gossip/flights.h"

#include <algorithm>

#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

Flights::Flights(const Options& o, int world)
    : options_(o), s_(o.integer("staleness", 0, 0)), graph_(o, world, "exponential", 1), copies_(o) {
  if (world > 1) EdgeCopies::refuse_mixed_buffers(o, "osgp");
}

void Flights::start(Worker& me) {
  sum_.start(me, buffer_policy(options_) == BufferPolicy::kMix);
  copies_.start(me, graph_, sum_.x());
  log_ = std::make_unique<OrderLog>(options_, text(me.comm.rank()));
}

void Flights::stepped(Worker& me) {
  ++age_;
  if (!aloft_) sum_.show(me);
}

// ---- one gossip after the other ---------------------------------------------------------------------------

void Flights::gossip(Worker& me) {
  if (log_->replaying()) {
    replay(me);
  } else if (ahead_ > 0) {
    --ahead_;
  } else {
    if (aloft_ && age_ > s_) wait(me);
    if (!aloft_ || !missing(me)) turn(me);
  }
  log_->happened(kForward);
  met_ = false;
}

void Flights::replay(Worker& me) {
  while (log_->next() != kForward)
    if (log_->next() >= 0)
      turn(me);
    else
      log_->happened(log_->next());  // a meeting of the recorded run
}

void Flights::turn(Worker& me) {
  if (aloft_) wait(me);  // is here already, but in a replay
  log_->happened(started_);
  sum_.take_buffers(me);
  if (aloft_) absorb(me);
  launch(me);
  sum_.give_buffers(me);
  age_ = 0;
}

// X += M, w += w_M, in in-peer order.
void Flights::absorb(const Worker& me) {
  std::vector<Tensor> in;
  std::vector<double> w;
  for (const comm::Edge& e : in_air_.mix.in) {
    const auto m = here_.find({started_ - 1, e.peer});
    CHECK(m != here_.end(), "a gossip that has not landed");
    in.push_back(me.comm.beside(sum_.all(), m->second).payload);
    w.push_back(m->second.weight);
    here_.erase(m);
  }
  sum_.add(in, w);
  aloft_ = 0;
}

// X, w <- X, w / (p+1), and sends that share.
void Flights::launch(const Worker& me) {
  const int64_t q = started_;
  const comm::Mix p = mix_at(me, q);
  if (copies_) {
    copies_.give(me, p, kShare, q, sum_.x(), sum_.w());
    copies_.leave(p, sum_.x());  // with what the codec has rounded off
  } else {
    give(me.comm, p, kShare, q, sum_.all(), sum_.w());
    combine(me.comm, {.y = sum_.all(), .x = sum_.all(), .self = p.self}, p, {});
  }
  sum_.keep(p.self);
  in_air_.mix = p, in_air_.number = q;
  ++started_;
  aloft_ = !p.in.empty();
}

const comm::Edge* Flights::missing(const Worker& me) {
  const int64_t q = started_ - 1;
  if (in_air_.number != q) in_air_.mix = mix_at(me, q), in_air_.number = q;
  for (const comm::Edge& e : in_air_.mix.in) {
    if (here_.count({q, e.peer})) continue;
    std::optional<comm::Message> m = me.comm.poll(e.peer, kShare, q);
    if (!m) return &e;
    land(me, e, q, std::move(*m));
  }
  return nullptr;
}

// Messages of one sender land in the order of their numbers.
void Flights::land(const Worker& me, const comm::Edge& e, int64_t q, comm::Message m) {
  here_.emplace(Place(q, e.peer), copies_ ? copies_.share(me, e, std::move(m)) : std::move(m));
}

void Flights::wait(const Worker& me) {
  auto began = comm::Clock::now(), looked = began;
  const double deadline = me.comm.options().deadline;
  const double nap = std::max(0.5, comm::longest_nap());  // which absence() does not take for one
  while (const comm::Edge* e = missing(me)) {
    began += comm::absence(looked);
    const double waited = comm::seconds_since(began);
    if (waited >= deadline)
      throw comm::Timeout(e->peer, text("rank ", me.comm.rank(), " waited ", waited, " s for gossip ",
                                        started_ - 1, " of rank ", e->peer));
    wait_a_moment(me, *e, std::min(nap, deadline - waited));
  }
}

void Flights::wait_a_moment(const Worker& me, const comm::Edge& e, double seconds) {
  hurry(me);
  const int64_t q = started_ - 1;
  if (auto m = calls_.take(me.comm, seconds, e.peer, kShare, q)) land(me, e, q, std::move(*m));
}

// A worker that has come to a meeting starts its next gossip only if it hears that another one waits for it.
void Flights::hurry(const Worker& me) {
  const int64_t q = started_ - 1;
  for (const comm::Edge& e : in_air_.mix.in)
    if (!here_.count({q, e.peer})) calls_.ask(me.comm, e.peer, q);
}

// ---- meetings ---------------------------------------------------------------------------------------------

void Flights::meet(Worker& me) {
  if (me.comm.size() == 1) return;
  const bool again = log_->replaying(), recorded = log_->has_meeting(kMeeting, !met_);
  if (recorded) log_->happened(kMeeting);
  while (again && recorded && log_->next() != kMet) turn(me);
  gather(me, again);
  if (recorded) log_->happened(kMet);
  met_ = true;
  double w = 0;
  const Tensor all = all_there_is(me, w);
  scaled_copy(me.x, 1 / w, all.view({me.x.size()}));
}

// With s = 0 all gossip equally often. So only what another worker waits for is sent: the gossip of the next
// step, which that step then does not send again.
void Flights::gather(Worker& me, bool replays) {
  comm::Communicator& comm = me.comm;
  const bool on_demand = s_ == 0 && !replays;
  if (on_demand) calls_.come(comm, graph_.neighbors(comm.rank()).out);
  meeting_.meet(comm, [&] {
    if ((on_demand || replays) && calls_.wanted(comm) < started_) return;
    if (const comm::Edge* e = aloft_ ? missing(me) : nullptr) return wait_a_moment(me, *e, Meeting::nap(0));
    if (replays) return;
    turn(me);
    if (on_demand) ++ahead_;
  });
  calls_.met(comm);
  const std::vector<int64_t> started = tell_started(me);  // from here on no worker starts one
  for (int64_t q = started_ - aloft_; q < *std::max_element(started.begin(), started.end()); ++q)
    for (const comm::Edge& e : mix_at(me, q).in)
      if (q < started[size_t(e.peer)] && !here_.count({q, e.peer}))
        land(me, e, q, comm.take(e.peer, kShare, q));
}

// How many gossips each worker has started, so that all know what is on its way to them.
std::vector<int64_t> Flights::tell_started(const Worker& me) {
  std::vector<int64_t> all;
  for (const auto& theirs : comm::gather_numbers(me.comm, {double(started_)}))
    all.push_back(int64_t(theirs[0]));
  return all;
}

// X and w with what is here and not absorbed.
Tensor Flights::all_there_is(const Worker& me, double& w) {
  sum_.take_buffers(me);
  Tensor all = sum_.all().clone();
  w = sum_.w();
  for (const auto& [place, m] : here_) axpy(all, 1.f, me.comm.beside(all, m).payload), w += m.weight;
  return all;
}

// The sum of w over workers and flights is n, so the mean of all X there is, is the model.
Tensor Flights::contribution(Worker& me) {
  double w = 0;
  return all_there_is(me, w).view({me.x.size()});
}

// X <- mean X, w <- mean w. All start again with the same number.
void Flights::average(Worker& me) {
  double w = 0;
  copy(sum_.all(), all_there_is(me, w));
  me.comm.mean(sum_.all()).wait();
  sum_.set(mean_weight(me.comm, w));
  here_.clear();
  const std::vector<int64_t> started = tell_started(me);
  started_ = *std::max_element(started.begin(), started.end());
  aloft_ = age_ = ahead_ = 0;
  sum_.show(me), sum_.give_buffers(me);
}

void Flights::visit(Archive& a) {
  sum_.visit(a), a("age", age_), a("ahead", ahead_);
  a("started", started_), a("aloft", aloft_);
  int64_t count = int64_t(here_.size());
  a("flights", count);
  std::map<Place, comm::Message> all;
  auto at = here_.begin();
  for (int64_t i = 0; i < count; ++i) {
    Under one(a, text("flight", i, "."));
    comm::Message m = a.loading() ? comm::Message{{}, Tensor(sum_.all().shape())} : at->second;
    int64_t number = a.loading() ? 0 : at->first.first, from = a.loading() ? 0 : at->first.second;
    one("number", number), one("from", from), one("weight", m.weight), one("x", m.payload);
    all.emplace(Place(number, comm::Rank(from)), std::move(m));
    if (!a.loading()) ++at;
  }
  if (a.loading()) here_ = std::move(all);
  copies_.visit(a);
  log_->visit(a);
}

}  // namespace skein::optim
