// The server's loop: the next request, its turn, and what is left when a worker is lost in it.
#include "optim/center/center.h"

#include <numeric>
#include <utility>

#include "comm/communicator/notices.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

using namespace center;
using comm::Clock;
using comm::Message;
using comm::Request;

Message Turn::take() {
  // Messages of turns that a lease has ended are too late, and are dropped.
  for (auto m = comm_.poll(worker, kToCenter); m; m = comm_.poll(worker, kToCenter)) {
    if (m->step < sequence_) continue;
    CHECK(m->step == sequence_ && m->payload.size() == theta.size(), m->step, sequence_, m->payload.size());
    taken_ = true;
    return comm_.beside(theta, std::move(*m));
  }
  Message m = comm_.take(worker, kToCenter, sequence_, theta, comm::Precision::kWire);
  taken_ = true;
  return m;
}

void Turn::give(const Tensor& x, int64_t v) { comm_.push(worker, kFromCenter, sequence_, 1, x, double(v)); }

Center::Center(const Options& o, std::unique_ptr<comm::Communicator> all, int workers, Column column,
               int64_t kept)
    : comm_(std::move(all)),
      workers_(workers),
      column_(std::move(column)),
      log_(o, "server"),
      kept_(kept),
      inbox_(comm::inbox_beside(*comm_, workers)) {}

void Center::serve(const std::function<bool()>& go_on) {
  try {
    while (go_on()) {
      comm_->progress();
      if (const auto r = due()) serve(*r);
    }
  } catch (const comm::EpochEnds&) {  // the workers know it, too
  } catch (const std::exception& e) {
    std::vector<comm::Rank> workers(static_cast<size_t>(workers_));
    std::iota(workers.begin(), workers.end(), 0);
    comm::refuse(*comm_, text("the server has failed: ", e.what()), workers);
  }
}

// The request that has waited longest; in a replay, that of the worker whose turn it was.
std::optional<Request> Center::due() {
  for (const auto until = Clock::now() + std::chrono::milliseconds(50);;) {
    if (!early_.empty()) {
      go_to_position();
      if (const auto at = early_.find(int(log_.next())); at != early_.end())
        return early_.extract(at).mapped();
      const double silence = comm::seconds_since(turned_);
      if (silence > comm_->options().deadline)
        throw Error(text("replaying, it is the turn of worker ", log_.next(),
                         ", which has not asked for it in ", comm_->options().deadline,
                         " s; were epochs, checkpoints or data other ones in the recording?"));
    }
    const auto r = inbox_.next(until);
    if (!r || r->kind != kTurn || !log_.replaying()) return r;
    if (early_.empty()) turned_ = Clock::now();
    early_[r->worker] = *r;
  }
}

void Center::serve(const Request& r) {
  const auto lost = [&] {
    ++leases_lost_;
    if (!comm_->membership().alive(comm_->world_rank(r.worker))) inbox_.forget(r.worker);
  };
  try {
    if (r.kind == kTurn) turn(r);
    if (r.kind == kPull) pull(r);
    if (r.kind == kPut) put(r);
  } catch (const comm::PeerLost&) { lost(); } catch (const comm::Timeout&) {
    lost();
  }
}

void Center::turn(const Request& r) {
  CHECK(theta_, "a turn before there is a center");
  go_to_position();
  Turn t(*comm_, r, theta_, all_.view({kept_ * theta_.size()}, theta_.size()), version_);
  const auto count = [&] {
    version_ += t.changes();
    turned_ = Clock::now();
    log_.happened(r.worker);
  };
  try {
    column_(t);
  } catch (...) {
    if (t.taken()) count();  // its commit was whole, only the answer did not arrive
    throw;
  }
  count();
}

// Called late: a run that resumes first puts its beginning, which must not cost it the recording.
void Center::go_to_position() {
  if (!log_to_) return;
  log_.go_to(*log_to_);
  log_to_.reset();
}

void Center::inherit(const Tensor& all, int64_t version) {
  all_ = all, version_ = version;
  theta_ = all_.view({all_.size() / (1 + kept_)});
  inherited_ = true;
}

void Center::read(const Tensor& all, int64_t& version) const {
  if (all_) copy(all, all_);
  version = version_;
}

void Center::pull(const Request& r) {
  CHECK(theta_, "a pull before there is a center");
  go_to_position();
  comm_->push(r.worker, kFromCenter, r.sequence, 1, all_);
  comm_->push(r.worker, kStateFromCenter, r.sequence, 1,
              Tensor::of<int64_t>({2}, {version_, log_.position()}));
}

void Center::put(const Request& r) {
  const Message all = comm_->take(r.worker, kToCenter, r.sequence);
  const Message state = comm_->take(r.worker, kStateToCenter, r.sequence, Tensor({2}, kI64));
  if (!all_) {
    all_ = Tensor(all.payload.shape(), kF32, comm_->allocator());
    theta_ = all_.view({all_.size() / (1 + kept_)});
  }
  const auto [version, log] = std::pair(state.payload.data<int64_t>()[0], state.payload.data<int64_t>()[1]);
  if (!inherited_ || version > version_) {
    const Tensor given = comm_->beside(all_, all).payload;
    inherited_ ? copy(theta_, given.view({theta_.size()})) : copy(all_, given);
    version_ = version, log_to_ = log;
  }
  comm_->push(r.worker, kStateFromCenter, r.sequence, 1, Tensor::of<int64_t>({2}, {version_, log}));
}

}  // namespace skein::optim
