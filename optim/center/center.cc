// The server's loop: the next request, its turn, and what is left when a worker is lost in it.
#include "optim/center/center.h"

#include <cstdio>
#include <numeric>
#include <utility>

#include "comm/communicator/notices.h"
#include "comm/communicator/patience.h"
#include "comm/communicator/unrounded.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

using namespace center;
using comm::Clock;
using comm::Message;
using comm::Request;

Message Turn::take() {
  if (brought_) {
    taken_ = true;
    return comm_.beside(theta, *std::exchange(brought_, {}));
  }
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

void Turn::give(const Tensor& x, int64_t v) {
  given_ = true;
  comm_.push(worker, kFromCenter, sequence_, 1, x, double(v));
}

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
      if (auto next = due()) serve(std::move(*next));
    }
  } catch (const comm::EpochEnds&) {  // the workers know it, too
  } catch (const std::exception& e) {
    std::vector<comm::Rank> workers(static_cast<size_t>(workers_));
    std::iota(workers.begin(), workers.end(), 0);
    comm::refuse(*comm_, text("the server has failed: ", e.what()), workers);
  }
}

std::optional<Center::Due> Center::put_off_before() {
  for (auto i = put_off_.begin(); i != put_off_.end();) try {
      if (auto m = comm_->poll(i->worker, kToCenter, i->sequence)) {
        Due due{*i, std::move(*m)};
        put_off_.erase(i);
        return due;
      }
      ++i;
    } catch (const comm::PeerLost&) {
      inbox_.forget(i->worker);
      i = put_off_.erase(i);
    }
  return std::nullopt;
}

// The request that has waited longest; in a replay, that of the worker whose turn it was.
std::optional<Center::Due> Center::due() {
  if (auto before = put_off_before()) return before;
  for (const auto until = Clock::now() + std::chrono::milliseconds(50);;) {
    if (!early_.empty()) {
      go_to_position();
      if (const auto at = early_.find(int(log_.next())); at != early_.end())
        return Due{early_.extract(at).mapped()};
      const double silence = comm::seconds_since(turned_);
      if (silence > comm_->options().deadline)
        throw Error(text("replaying, it is the turn of worker ", log_.next(),
                         ", which has not asked for it in ", comm_->options().deadline,
                         " s; were epochs, checkpoints or data other ones in the recording?"));
    }
    const auto r = inbox_.next(until);
    if (!r) return std::nullopt;
    const auto of_its_former_life = [&](const Request& old) { return old.worker == r->worker; };
    std::erase_if(put_off_, of_its_former_life);
    if (r->kind != kTurn || !log_.replaying()) return Due{*r};
    if (early_.empty()) turned_ = Clock::now();
    early_[r->worker] = *r;
  }
}

void Center::serve(Due next) {
  const Request& r = next.request;
  const auto lost = [&] {
    ++lost_.leases;
    if (!comm_->membership().alive(comm_->world_rank(r.worker))) inbox_.forget(r.worker);
  };
  try {
    if (r.kind == kTurn) turn(r, std::move(next.brought));
    if (r.kind == kPull) pull(r);
    if (r.kind == kPut) put(r);
  } catch (const comm::PeerLost&) { lost(); } catch (const comm::Timeout&) {
    lost();
  }
}

void Center::turn(const Request& r, std::optional<Message> brought) {
  CHECK(theta_, "a turn before there is a center");
  go_to_position();
  Turn t(*comm_, r, theta_, all_.view({kept_ * theta_.size()}, theta_.size()), version_, std::move(brought));
  const auto count = [&] {
    version_ += t.changes();
    turned_ = Clock::now();
    log_.happened(r.worker);
  };
  try {
    column_(t);
  } catch (const comm::Timeout&) {
    if (t.taken()) count();
    if (t.given() && !t.taken()) say_late(r.worker);
    if (t.given() || t.taken()) throw;
    log_.replaying() ? void(early_[r.worker] = r) : put_off_.push_back(r);
    return;
  } catch (...) {
    if (t.taken()) count();  // its commit was whole, only the answer did not arrive
    throw;
  }
  count();
}

// Such a worker goes on and its steps count, so without a warning its user would not see what is wrong.
void Center::say_late(int worker) {
  if (std::exchange(lost_.late_one_said, true)) return;
  const std::string line = text("warning: worker ", worker, " had the center for longer than the deadline, ",
                                comm_->options().deadline, " s, so what it gave was dropped; where links or ",
                                "steps are slow, raise --deadline; further ones are not said\n");
  std::fputs(line.c_str(), stderr);
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
  const comm::Unrounded exactly(*comm_);
  comm_->push(r.worker, kFromCenter, r.sequence, 1, all_);
  comm_->push(r.worker, kStateFromCenter, r.sequence, 1,
              Tensor::of<int64_t>({2}, {version_, log_.position()}));
}

void Center::put(const Request& r) {
  const comm::Patience as_long_as_it_lives(*comm_, comm::kForever);
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
