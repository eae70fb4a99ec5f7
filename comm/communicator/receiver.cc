// Receiver: every wait makes progress, and looks again and again for a reason why its message can never come.
#include "comm/communicator/receiver.h"

#include <algorithm>
#include <set>
#include <utility>

#include "comm/communicator/sender.h"

namespace skein::comm {

namespace {
constexpr double kUnsettledNap = 0.5;  // seconds, while a rank that has failed is soon to count as lost
constexpr double kGrace = 1;           // second that a wait may last beyond its deadline in a simulated world
}  // namespace

// While it lives the caller may be blocked. If it was, the meter is told for how long.
class Receiver::Blocked {
 public:
  Blocked(Group& g, const Key& k) : Blocked(g, k.tag < kOwnTags ? "message" : "collective") {
    if (k.tag < kOwnTags)
      from_ = k.from, step_ = k.step;
    else
      whole_ = true;
  }
  Blocked(Group& g, const char* name) : g_(g), name_(name), began_(g.now()) {}
  Blocked(const Blocked&) = delete;
  ~Blocked() {
    if (!napped) return;
    const double now = g_.now();
    if (whole_ && g_.meter->counts()) g_.meter->transfer(name_, began_, now, -1);
    g_.meter->blocked(name_, from_, step_, began_, now);
  }
  bool napped = false;

 private:
  Group& g_;
  const char* name_;
  const double began_;
  Rank from_ = kAnyone;
  int64_t step_ = kAnyStep;
  bool whole_ = false;  // a collective without a Pending is under way while it is waited for
};

void Receiver::disagree(Rank world, const std::string& why) {
  const Message m = g_.mailbox().refusal(why);
  g_.transport.to(world).send(m, m.payload, after(g_.options.deadline));
  g_.transport.progress();
  throw Disagreement(why);
}

bool Expected::is(const Message& m) const {
  return layout == 0 ||
         (m.layout == layout && DType(m.dtype) == dtype && (elements < 0 || m.payload.size() == elements));
}

std::optional<Message> Receiver::poll(const Key& k, const Expected& expected) {
  std::optional<Message> m = g_.mailbox().poll(k);
  if (!m) return {};
  if (!expected.is(*m))
    disagree(m->from, text("rank ", g_.transport.rank(), " and rank ", m->from, " disagree about ",
                           k.tag >= kOwnTags ? text("collective ", k.step >> 24)
                                             : text("tag ", k.tag, ", step ", k.step),
                           ": the payload is ", m->bytes / size_of(DType(m->codec)), " x ", DType(m->dtype),
                           " laid out as ", m->layout, ", expected was the layout ", expected.layout));
  if (k.tag < kOwnTags) g_.meter->took(g_.id, *m);
  return m;
}

std::optional<Message> Receiver::wait_unless(const Key& other, Clock::time_point until, const Key& k) {
  const Mailbox::Heed heed(g_.mailbox(), other);
  return wait_until(until, k, {}, Precision::kPushed, &other);
}

// A rank may have left because another is lost; then that one is named.
void Receiver::check(const Key& k) const {
  try {
    g_.mailbox().check(k);
  } catch (const PeerLost&) {
    g_.require_members();
    throw;
  }
}

void Receiver::nap(const Key& k, Clock::time_point began, Clock::time_point until) {
  Mailbox& box = g_.mailbox();
  box.membership().settle();
  check(k);
  g_.require_members();
  if (k.from != kAnyone && k.step != kAnyStep && k.tag < kOwnTags && g_.transport.ordered())
    if (const auto later = box.later_step(k))
      disagree(k.from,
               text("rank ", g_.transport.rank(), " waits for tag ", k.tag, ", step ", k.step, " of rank ",
                    k.from, ", which has gone on to step ", *later, " without sending it"));
  if (seconds_since(began) > g_.options.deadline)
    throw Timeout(k.from, text("rank ", g_.transport.rank(), " waited ", g_.options.deadline, " s for ",
                               k.from == kAnyone ? std::string("anyone") : text("rank ", k.from), ", tag ",
                               k.tag, ", step ", k.step, box.holds(k.communicator, k.from)));
  // Naps are short, because a deadline, a death or another thread's progress changes things
  // without a message.
  const double nap = box.membership().unsettled() ? std::min(longest_nap(), kUnsettledNap) : longest_nap();
  const double deadline = g_.options.deadline;
  const double left = std::max(std::min(kGrace, deadline), deadline - seconds_since(began));
  g_.transport.wait(k, std::min({until, after(nap), after(left)}));
}

Message Receiver::wait(const Key& k, const Expected& expected, Precision precision) {
  return *wait_until(Clock::time_point::max(), k, expected, precision);
}

std::optional<Message> Receiver::wait_until(Clock::time_point until, const Key& k, const Expected& expected,
                                            Precision precision, const Key* other) {
  auto began = Clock::now(), looked = began;
  Blocked blocked(g_, k);
  for (bool last = false;;) {
    began += absence(looked);
    progress();
    if (std::optional<Message> m = poll(k, expected)) {
      if (precision == Precision::kWire) m->dtype = m->codec;  // as if it had been pushed in that type
      return unpack(std::move(*m));
    }
    if (Clock::now() >= until || (other && g_.mailbox().has(*other))) return {};
    blocked.napped = true;
    try {
      nap(k, began, until);
    } catch (const PeerLost&) {  // what it sent before it left may have arrived meanwhile
      if (last) throw;
      last = true;
    }
  }
}

Message Receiver::unpack(Message m) const {
  if (m.codec != m.dtype && !m.payload.device().is_host()) {
    m.payload = g_.staging.converted(DType(m.dtype), m.payload);
  } else if (m.codec != m.dtype) {
    Tensor y(m.payload.shape(), DType(m.dtype));
    pack(y, 1, m.payload);
    m.payload = std::move(y);
  }
  m.from = g_.rank_of(m.from);
  return m;
}

// ---- progress ---------------------------------------------------------------------------------------------

bool Receiver::advance(Pending::Op& op) {
  struct Advancing {
    Group& g;
    const std::optional<bool> before;
    ~Advancing() { g.advancing = before; }  // also where it throws
  } advancing{g_, std::exchange(g_.advancing, op.counted)};
  op.advance();
  if (op.done && op.began >= 0)
    g_.meter->transfer(op.name, op.began, std::max(op.began, op.landed), op.bytes);
  return op.done;
}

void Receiver::progress() {
  g_.transport.progress();
  for (auto i = ops_.begin(); i != ops_.end();) {
    const std::shared_ptr<Pending::Op> op = *i;
    i = advance(*op) ? ops_.erase(i) : std::next(i);
  }
}

Pending Receiver::begin(std::shared_ptr<Pending::Op> op, double began) {
  op->counted = g_.counted();
  if (g_.meter->counts()) op->began = began;
  if (!advance(*op)) ops_.push_back(op);
  return Pending(*this, std::move(op));
}

void Receiver::wait(Pending::Op& op) {
  auto began = Clock::now(), looked = began;
  Blocked blocked(g_, op.name);
  std::set<Rank> lost;
  try {
    for (progress(); !op.done; progress()) {
      began += absence(looked);
      blocked.napped = true;
      try {
        if (op.awaited)
          nap_for_device(began);
        else
          nap(op.missing, began);
      } catch (const PeerLost& e) {  // what it sent before it left may have arrived meanwhile
        if (!lost.insert(e.rank).second) throw;
      }
    }
  } catch (...) {
    op.give_up();
    throw;
  }
}

// A lost peer is noticed as in all waits: by the host's own connections, not by the device.
void Receiver::nap_for_device(Clock::time_point began) {
  for (const auto& op : ops_) op->check_health();
  if (seconds_since(began) > g_.options.deadline)
    throw Timeout(kAnyone, text("rank ", g_.transport.rank(), " waited ", g_.options.deadline,
                                " s for a sum between GPUs; is a worker stopped, or its GPU lost?"));
  nap({g_.id, kAnyone, kFirst, kAnyStep}, began, Clock::now() + std::chrono::microseconds(30));
}

// ---- the caller's side ------------------------------------------------------------------------------------

// The scaling runs on the stream of the thread that waits, and only once.
bool Pending::finished() {
  if (op_ && op_->done && op_->sum) scale(std::exchange(op_->sum, {}), op_->factor);
  return !op_ || op_->done;
}
void Pending::wait() {
  if (finished()) return;
  receiver_->wait(*op_);
  finished();
}
bool Pending::done() {
  if (op_ && !op_->done) receiver_->progress();
  return finished();
}

}  // namespace skein::comm
