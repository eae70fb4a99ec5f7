// The server's loop: the next request, its turn, and what is left when a worker is lost in it.
#include "optim/center.h"

#include <cstring>

#include "engine/vec.h"

namespace skein::optim {

using namespace center;
using comm::Clock;
using comm::Message;
using comm::Request;

namespace {

// An archive of one number, to read a log's position and to set it.
class Position final : public Archive {
 public:
  explicit Position(std::optional<int64_t> set = {}) : loading_(set), at(set.value_or(0)) {}
  bool loading() const override { return loading_; }
  void operator()(const std::string&, int64_t& v) override { loading_ ? v = at : at = v; }
  void operator()(const std::string&, Tensor&) override { CHECK(false, "a log has one number"); }
  void operator()(const std::string&, double&) override { CHECK(false, "a log has one number"); }
  void operator()(const std::string&, std::string&) override { CHECK(false, "a log has one number"); }

 private:
  const bool loading_;

 public:
  int64_t at;
};

}  // namespace

Message Turn::take() {
  // Of turns that a lease ended, something may have come after all: it is late, and dropped.
  for (auto m = comm_.poll(worker, kToCenter); m; m = comm_.poll(worker, kToCenter)) {
    if (m->step < sequence_) continue;
    CHECK(m->step == sequence_ && m->payload.size() == theta.size(), m->step, sequence_, m->payload.size());
    taken_ = true;
    return comm_.beside(theta, std::move(*m));
  }
  Message m = comm_.take_narrow(worker, kToCenter, sequence_, theta);
  taken_ = true;
  return m;
}

void Turn::give(const Tensor& x, int64_t v) { comm_.push(worker, kFromCenter, sequence_, 1, x, double(v)); }

Center::Center(const Options& o, std::unique_ptr<comm::Communicator> all, int workers, Column column)
    : comm_(std::move(all)),
      workers_(workers),
      column_(std::move(column)),
      log_(o, "server"),
      inbox_({.key = comm_->options().key, .workers = workers}) {}

void Center::serve(const std::function<bool()>& go_on) {
  try {
    while (go_on()) {
      comm_->progress();
      if (const auto r = due()) serve(*r);
    }
  } catch (const std::exception& e) { tell_all(text("the server has failed: ", e.what())); }
}

// The request that waits longest; replaying, that of whose turn it was.
std::optional<Request> Center::due() {
  for (const auto until = Clock::now() + std::chrono::milliseconds(50);;) {
    if (!early_.empty()) {
      go_to_position();
      if (const auto at = early_.find(int(log_.next())); at != early_.end())
        return early_.extract(at).mapped();
      const double silence = std::chrono::duration<double>(Clock::now() - turned_).count();
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
  Turn t(*comm_, r, theta_, version_);
  const auto count = [&] {
    ++version_, ++turns_;
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

// Late: a run that resumes puts its beginning first, which must not cost it the recording.
void Center::go_to_position() {
  if (!log_to_) return;
  Position log(*log_to_);
  log_.visit(log);
  log_to_.reset();
}

void Center::pull(const Request& r) {
  CHECK(theta_, "a pull before there is a center");
  go_to_position();
  Position log;
  log_.visit(log);
  comm_->push(r.worker, kFromCenter, r.sequence, 1, theta_);
  comm_->push(r.worker, kStateFromCenter, r.sequence, 1, Tensor::of<int64_t>({2}, {version_, log.at}));
}

void Center::put(const Request& r) {
  const Message theta = comm_->take(r.worker, kToCenter, r.sequence);
  const Message state = comm_->take(r.worker, kStateToCenter, r.sequence);
  if (!theta_) theta_ = Tensor(theta.payload.shape(), kF32, comm_->allocator());
  copy(theta_, comm_->beside(theta_, theta).payload);
  version_ = state.payload.data<int64_t>()[0];
  log_to_ = state.payload.data<int64_t>()[1];
  comm_->push(r.worker, kStateFromCenter, r.sequence, 1, state.payload);
}

// As a refusal, which ends every wait there is.
void Center::tell_all(const std::string& why) {
  Message m;
  m.kind = comm::Kind::kRefusal;
  m.epoch = comm_->membership().epoch();
  m.from = comm_->transport().rank();
  m.payload = Tensor({int64_t(why.size())}, kU8, comm_->allocator());
  std::memcpy(m.payload.raw(), why.data(), why.size());
  m.bytes = m.payload.bytes();
  m.codec = m.dtype = uint8_t(kU8);
  for (int w = 0; w < workers_; ++w) try {
      comm_->transport().to(comm_->world_rank(w)).send(m, m.payload, Clock::now() + std::chrono::seconds(5));
    } catch (const Error&) {  // it is lost itself
    }
  comm_->progress();
}

}  // namespace skein::optim
