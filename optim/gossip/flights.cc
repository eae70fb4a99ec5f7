// Gossips in the air.
#include "optim/gossip/flights.h"

#include <algorithm>

#include "comm/communicator/words.h"
#include "engine/vectors/mixing.h"

namespace skein::optim {
namespace {

constexpr double kNap = 1e-3;  // seconds of a wait, after which it looks whether anything else has changed

}  // namespace

const comm::Edge* Flights::missing(const Worker& me) {
  const int64_t q = started_ - 1;
  if (mix_of_ != q) mix_ = graph_.at(me, q), mix_of_ = q;
  for (const comm::Edge& e : mix_.in) {
    if (here_.count({q, e.peer})) continue;
    std::optional<comm::Message> m = me.comm.poll(e.peer, kShare, q);
    if (!m) return &e;
    here_.emplace(Place(q, e.peer), std::move(*m));
  }
  return nullptr;
}

bool Flights::landed(const Worker& me) { return aloft_ && !missing(me); }

void Flights::wait(const Worker& me) {
  const auto began = comm::Clock::now();
  while (const comm::Edge* e = missing(me)) {
    hurry(me);
    const int64_t q = started_ - 1;
    if (auto m = me.comm.take_within(kNap, e->peer, kShare, q))
      here_.emplace(Place(q, e->peer), std::move(*m));
    const double waited = comm::seconds_since(began);
    if (waited > me.comm.options().deadline)
      throw comm::Timeout(e->peer, text("rank ", me.comm.rank(), " waited ", waited, " s for gossip ", q,
                                        " of rank ", e->peer));
  }
}

// A worker that has come to a meeting starts its next gossip only if it hears that another one waits for it.
void Flights::hurry(const Worker& me) {
  const int64_t q = started_ - 1;
  for (const comm::Edge& e : mix_.in) {
    if (here_.count({q, e.peer}) || !meeting_.has_come(me.comm, e.peer)) continue;
    const auto asked = asked_for_.find(e.peer);
    if (asked != asked_for_.end() && asked->second >= q) continue;
    me.comm.push(e.peer, kWanted, q, 1, Tensor::zeros({1}));
    asked_for_[e.peer] = q;
  }
}

void Flights::absorb(const Worker& me, const Tensor& x, double& w) {
  CHECK(landed(me), "a gossip that has not landed");
  std::vector<Tensor> in;
  for (const comm::Edge& e : mix_.in) {
    const auto m = here_.find({started_ - 1, e.peer});
    in.push_back(me.comm.beside(x, m->second).payload);
    w += m->second.weight;
    here_.erase(m);
  }
  mix({.y = x, .x = x, .in = in});
  aloft_ = 0;
}

void Flights::start(const Worker& me, const Tensor& x, double& w) {
  CHECK(!aloft_, "two gossips aloft");
  const int64_t q = started_;
  const comm::Mix p = graph_.at(me, q);
  give(me.comm, p, kShare, q, x, w);
  combine(me.comm, {.y = x, .x = x, .self = p.self}, p, {});
  w *= p.self;
  mix_ = p, mix_of_ = q;
  ++started_;
  aloft_ = !p.in.empty();
}

void Flights::meet(const Worker& me, bool eager, const std::function<void()>& turn) {
  comm::Communicator& comm = me.comm;
  meeting_.meet(comm, [&] {
    while (const auto m = comm.poll(comm::kAnyone, kWanted)) wanted_ = std::max(wanted_, m->step);
    if (!eager && wanted_ < started_) return;
    const comm::Edge* e = aloft_ ? missing(me) : nullptr;
    if (!e) return turn();
    hurry(me);
    const int64_t q = started_ - 1;
    if (auto m = comm.take_within(kNap, e->peer, kShare, q)) here_.emplace(Place(q, e->peer), std::move(*m));
  });
  const std::vector<int64_t> started = tell_started(me);  // from here on no worker starts one
  for (int64_t q = started_ - aloft_; q < *std::max_element(started.begin(), started.end()); ++q)
    for (const comm::Edge& e : graph_.at(me, q).in)
      if (q < started[size_t(e.peer)] && !here_.count({q, e.peer}))
        here_.emplace(Place(q, e.peer), comm.take(e.peer, kShare, q));
}

// How many gossips each worker has started, so that all know what is on its way to them.
std::vector<int64_t> Flights::tell_started(const Worker& me) {
  std::vector<int64_t> all;
  for (const auto& theirs : comm::gather_numbers(me.comm, {double(started_)}))
    all.push_back(int64_t(theirs[0]));
  return all;
}

void Flights::add_to(const Worker& me, const Tensor& x, double& w) const {
  for (const auto& [place, m] : here_) axpy(x, 1.f, me.comm.beside(x, m).payload), w += m.weight;
}

void Flights::forget(const Worker& me) {
  here_.clear();
  const std::vector<int64_t> started = tell_started(me);
  started_ = *std::max_element(started.begin(), started.end());
  aloft_ = 0;
}

void Flights::visit(Archive& a, const Tensor& like) {
  a("started", started_), a("aloft", aloft_);
  int64_t count = int64_t(here_.size());
  a("flights", count);
  std::map<Place, comm::Message> all;
  auto at = here_.begin();
  for (int64_t i = 0; i < count; ++i) {
    Under one(a, text("flight", i, "."));
    comm::Message m = a.loading() ? comm::Message{{}, Tensor(like.shape())} : at->second;
    int64_t number = a.loading() ? 0 : at->first.first, from = a.loading() ? 0 : at->first.second;
    one("number", number), one("from", from), one("weight", m.weight), one("x", m.payload);
    all.emplace(Place(number, comm::Rank(from)), std::move(m));
    if (!a.loading()) ++at;
  }
  if (a.loading()) here_ = std::move(all);
}

}  // namespace skein::optim
