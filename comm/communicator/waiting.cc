// Communicator: taking, waiting, and what keeps a wait from ever ending.
#include <algorithm>
#include <utility>

#include "comm/communicator/pending.h"

namespace skein::comm {

// While it lives the caller may stand still; tells the meter for how long, if it did.
class Communicator::Blocked {
 public:
  Blocked(Communicator& c, const Key& k) : Blocked(c, k.tag < kOwnTags ? "message" : "collective") {
    if (k.tag < kOwnTags)
      from_ = k.from, step_ = k.step;
    else
      whole_ = true;
  }
  Blocked(Communicator& c, const char* name) : c_(c), name_(name), began_(c.now()) {}
  Blocked(const Blocked&) = delete;
  ~Blocked() {
    if (!napped) return;
    const double now = c_.now();
    if (whole_ && c_.meter_->counts()) c_.meter_->transfer(name_, began_, now, -1);
    c_.meter_->blocked(name_, from_, step_, began_, now);
  }
  bool napped = false;

 private:
  Communicator& c_;
  const char* name_;
  const double began_;
  Rank from_ = kAnyone;
  int64_t step_ = kAnyStep;
  bool whole_ = false;  // of a collective without a Pending: it is under way while it is waited for
};

void Communicator::disagree(Rank world, const std::string& why) {
  const Message m = transport_.mailbox().refusal(why);
  transport_.to(world).send(m, m.payload, after(options_.deadline));
  transport_.progress();
  throw Disagreement(why);
}

std::optional<Message> Communicator::poll(const Key& k, uint32_t layout) {
  std::optional<Message> m = transport_.mailbox().poll(k);
  if (!m) return {};
  if (layout && m->layout != layout)
    disagree(m->from, text("rank ", transport_.rank(), " and rank ", m->from, " disagree about ",
                           k.tag >= kOwnTags ? text("collective ", k.step >> 24)
                                             : text("tag ", k.tag, ", step ", k.step),
                           ": the payload is ", m->bytes / size_of(DType(m->codec)), " x ", DType(m->dtype),
                           " laid out as ", m->layout, ", expected was the layout ", layout));
  if (k.tag < kOwnTags) meter_->took(id_, *m);
  return m;
}

// Who has left may have done so because another is lost; then that one is named.
void Communicator::check(const Key& k) {
  try {
    transport_.mailbox().check(k);
  } catch (const PeerLost&) {
    require_members();
    throw;
  }
}
void Communicator::require_members() {
  const Membership& all = transport_.mailbox().membership();
  if (!options_.all_needed || !all.any_lost()) return;
  for (Rank r : all.dead())
    if (std::find(members_.begin(), members_.end(), r) != members_.end()) all.require(r);
}

void Communicator::wait_once(const Key& k, Clock::time_point began, Clock::time_point until) {
  Mailbox& box = transport_.mailbox();
  box.membership().settle();
  check(k);
  require_members();
  if (k.from != kAnyone && k.step != kAnyStep && k.tag < kOwnTags && transport_.ordered())
    if (const auto later = box.later_step(k))
      disagree(k.from,
               text("rank ", transport_.rank(), " waits for tag ", k.tag, ", step ", k.step, " of rank ",
                    k.from, ", which has gone on to step ", *later, " without sending it"));
  if (seconds_since(began) > options_.deadline)
    throw Timeout(k.from, text("rank ", transport_.rank(), " waited ", options_.deadline, " s for ",
                               k.from == kAnyone ? std::string("anyone") : text("rank ", k.from), ", tag ",
                               k.tag, ", step ", k.step, box.holds(k.communicator, k.from)));
  // Short naps: what changes without a message (a deadline, a death, another thread's progress) is looked at
  // again.
  transport_.wait(k, std::min({until, after(0.02), after(options_.deadline)}));
}

Message Communicator::wait_for(const Key& k, uint32_t layout, bool widen) {
  return *wait_until(Clock::time_point::max(), k, layout, widen);
}

std::optional<Message> Communicator::wait_until(Clock::time_point until, const Key& k, uint32_t layout,
                                                bool widen) {
  auto began = Clock::now(), looked = began;
  Blocked blocked(*this, k);
  for (bool last = false;;) {
    began += absence(looked);
    progress();
    if (std::optional<Message> m = poll(k, layout)) {
      if (!widen) m->dtype = m->codec;  // as if it had been pushed in the type it travelled in
      return unpack(std::move(*m));
    }
    if (Clock::now() >= until) return {};
    blocked.napped = true;
    try {
      wait_once(k, began, until);
    } catch (const PeerLost&) {  // what it sent before it left may have come in meanwhile
      if (last) throw;
      last = true;
    }
  }
}

Message Communicator::take(Rank from, Tag tag, int64_t step) { return wait_for(key(from, tag, step), 0); }
Message Communicator::take(Rank from, Tag tag, int64_t step, const Tensor& like) {
  Message m = wait_for(key(from, tag, step), layout_of(like.size(), like.dtype()));
  return beside(like, std::move(m));
}
Message Communicator::take_narrow(Rank from, Tag tag, int64_t step, const Tensor& like) {
  Message m = wait_for(key(from, tag, step), layout_of(like.size(), like.dtype()), false);
  return beside(like, std::move(m));
}
Message Communicator::beside(const Tensor& like, Message m) {
  CHECK(m.payload.size() == like.size(), m.payload.shape(), like.shape());
  m.payload = staging_->beside(like.device(), m.payload);
  return m;
}

std::optional<Message> Communicator::take_within(double seconds, Rank from, Tag tag, int64_t step) {
  return wait_until(after(seconds), key(from, tag, step), 0);
}

std::optional<Message> Communicator::poll(Rank from, Tag tag, int64_t step) {
  progress();
  const Key k = key(from, tag, step);
  if (std::optional<Message> m = poll(k, 0)) return unpack(std::move(*m));
  check(k);
  return {};
}
std::optional<Message> Communicator::poll_any(Tag tag) { return poll(kAnyone, tag, kAnyStep); }

Message Communicator::ask(Rank to, Tag tag, int64_t step, const Tensor& x, double weight) {
  push(to, tag, step, 1, x, weight);
  return take(to, tag, step);
}

// ---- progress ---------------------------------------------------------------------------------------------

bool Communicator::advance(Pending::Op& op) {
  op.advance(*this);
  if (op.done && op.began >= 0) meter_->transfer(op.name, op.began, std::max(op.began, op.landed), op.bytes);
  return op.done;
}

void Communicator::progress() {
  transport_.progress();
  for (auto i = ops_.begin(); i != ops_.end();) {
    const std::shared_ptr<Pending::Op> op = *i;
    i = advance(*op) ? ops_.erase(i) : std::next(i);
  }
}

Pending Communicator::begin(std::shared_ptr<Pending::Op> op, double began) {
  if (meter_->counts()) op->began = began;
  if (!advance(*op)) ops_.push_back(op);
  return Pending(*this, std::move(op));
}

Pending Communicator::mean(const Tensor& x) {
  Pending sum = all_reduce(x);
  if (sum.op_) sum.op_->to_divide = x;
  return sum;
}

// On the stream of the thread that asks, and only once.
bool Pending::finished() {
  if (op_ && op_->done && op_->to_divide) scale(std::exchange(op_->to_divide, {}), 1.0 / comm_->size());
  return !op_ || op_->done;
}

void Pending::wait() {
  if (finished()) return;
  const auto began = Clock::now();
  Communicator::Blocked blocked(*comm_, op_->name);
  try {
    for (comm_->progress(); !op_->done; comm_->progress()) {
      blocked.napped = true;
      if (op_->awaited)
        comm_->wait_for_device(began);
      else
        comm_->wait_once(op_->missing, began);
    }
  } catch (...) {
    op_->give_up();
    throw;
  }
  finished();
}
bool Pending::done() {
  if (op_ && !op_->done) comm_->progress();
  return finished();
}

}  // namespace skein::comm
