// Mailbox: one lock, a waiter per key, and the checks every arrival must pass.
#include "comm/mailbox.h"

#include <algorithm>
#include <utility>

#include "comm/notice.h"
#include "engine/words/host_memory.h"

namespace skein::comm {

namespace {

constexpr size_t kMostLetters = 10'000;

// Whether it begins like a message of a rank of this world.
bool is_ours(const Header& h, int size) {
  return h.magic == Header::kMagic && h.version == Header::kVersion && h.from >= 0 && h.from < size;
}

// Why `owner` does not take a message of data in; "" if it does.
std::string objection(Rank owner, const Membership& members, const Header& h) {
  const auto from = [&] {
    return text("rank ", owner, " refuses a message of rank ", h.from, " (tag ", h.tag, ", step ", h.step,
                "): ");
  };
  if (h.epoch != members.epoch())
    return text(from(), "it is of membership epoch ", h.epoch, ", ours is ", members.epoch());
  if (const std::string c = contradiction(h); !c.empty()) return text(from(), c);
  if (h.bytes > host_memory()) return text(from(), h.bytes, " bytes are more than this machine has memory");
  return {};
}

}  // namespace

Mailbox::Mailbox(Rank owner, int size, int64_t bound) : owner_(owner), membership_(size), parcels_(bound) {}

Message Mailbox::refusal(const std::string& why) const {
  const int64_t n = std::min(int64_t(why.size()), kLongestNotice);
  return notice(Kind::kRefusal, owner_, membership_.epoch(),
                Tensor::of<uint8_t>({n}, {why.begin(), why.begin() + n}));
}

std::string Mailbox::refuse(const std::string& why) {
  if (refused_.empty()) refused_ = why;
  wake_all();
  return why;
}

std::string Mailbox::put(Message m) {
  std::lock_guard lock(mutex_);
  if (!is_ours(m, membership_.size()) || (m.kind != Kind::kData && m.payload.bytes() > kLongestNotice) ||
      (m.kind == Kind::kGoodbye && m.from == owner_)) {
    ++refusals_.messages;
    return {};
  }
  if (m.kind == Kind::kGoodbye) {
    // A rank that leaves because others are lost names them, so that waits for it name those, too.
    lose_named(m, text("rank ", m.from, " found it lost and has ended"));
    m.step == kFailed ? membership_.fail(m.from) : membership_.leave(m.from);
    wake_all();
    return {};
  }
  if (m.kind == Kind::kGivenUp) {
    lose_named(m, text("rank ", m.from, " has given it up"));
    wake_all();
    return {};
  }
  if (m.kind == Kind::kRefusal) {
    const auto* words = static_cast<const char*>(m.payload.raw());
    if (refused_.empty()) refused_.assign(words, words + m.payload.bytes());
    wake_all();
    return {};
  }
  if (m.kind == Kind::kLetter) {
    // A member that does not read its letters loses some; they are repeated.
    if (letters_.size() < kMostLetters && m.bytes == m.payload.bytes() && m.bytes <= kLongestNotice)
      letters_.push_back(std::move(m));
    ++wakings_;
    news_.notify_all();
    return {};
  }
  if (m.kind != Kind::kData)
    return refuse(
        text("rank ", owner_, " got a message of unknown kind ", int(m.kind), " from rank ", m.from));
  if (const std::string why = objection(owner_, membership_, m); !why.empty()) return refuse(why);
  if (m.pieces == 1 && m.payload.bytes() != m.bytes)
    return refuse(text("rank ", owner_, " got ", m.payload.bytes(), " bytes from rank ", m.from, " (tag ",
                       m.tag, ", step ", m.step, "), announced were ", m.bytes));
  deliver(std::move(m));
  return {};
}

void Mailbox::deliver(Message m) {
  if (m.arrived < 0) m.arrived = clock_seconds();
  const Key key = key_of(m);
  parcels_.add(std::move(m));
  for (Waiter* w : waiters_)
    if (matches(w->key, key)) {
      w->wake = true;
      w->woken.notify_one();
    }
  if (std::any_of(heeded_.begin(), heeded_.end(), [&](const Key& k) { return matches(k, key); })) wake_all();
}

Mailbox::Heed::Heed(Mailbox& box, const Key& k)
    : box_(box), mine_((std::lock_guard(box.mutex_), box.heeded_.insert(box.heeded_.end(), k))) {}
Mailbox::Heed::~Heed() {
  const std::lock_guard lock(box_.mutex_);
  box_.heeded_.erase(mine_);
}

Tensor Mailbox::landing(const Header& h, Allocator& from) {
  std::lock_guard lock(mutex_);
  if (!is_ours(h, membership_.size()) || h.kind != Kind::kData) return {};
  if (!objection(owner_, membership_, h).empty()) return {};
  return assemblies_.place(h, from);
}

void Mailbox::landed(const Header& h, const Tensor& landing) {
  std::lock_guard lock(mutex_);
  if (std::optional<Message> m = assemblies_.placed(h, landing)) deliver(std::move(*m));
}

void Mailbox::lose_named(const Message& m, const std::string& why) {
  if (m.dtype != uint8_t(kI32) || m.payload.bytes() != m.bytes) return;
  const auto* lost = static_cast<const Rank*>(m.payload.raw());
  for (int64_t i = 0; i < m.bytes / int64_t(sizeof(Rank)); ++i)
    if (lost[i] == owner_ && m.kind == Kind::kGivenUp)
      given_up_ = text("rank ", owner_, " was given up by rank ", m.from,
                       ", which had not heard of it for too long (stopped, or cut off?); the others continue "
                       "without it");
    else if (lost[i] >= 0 && lost[i] < membership_.size() && lost[i] != owner_)
      membership_.lose(lost[i], why);
}

// Once the epoch ends there is always room: hardly anything is taken any more, and letters come behind.
bool Mailbox::room(Rank from, int64_t bytes) const {
  std::lock_guard lock(mutex_);
  return !epoch_ends_.empty() || parcels_.room(from, bytes);
}

bool Mailbox::wait_room(Rank from, int64_t bytes, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return room_.wait_until(lock, until, [&] { return !epoch_ends_.empty() || parcels_.room(from, bytes); });
}

void Mailbox::lose(Rank r, const std::string& why, bool ended, std::optional<double> silent) {
  membership_.lose(r, why, ended, silent);
  wake();
}
void Mailbox::leave(Rank r) {
  membership_.leave(r);
  wake();
}
void Mailbox::fail(Rank r) {
  membership_.fail(r);
  wake();
}
void Mailbox::poison(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (poisoned_.empty()) poisoned_ = why;
  wake_all();
}
void Mailbox::end_epoch(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (epoch_ends_.empty() || why.empty()) epoch_ends_ = why;
  wake_all();
}

bool Mailbox::epoch_ends() const {
  std::lock_guard lock(mutex_);
  return !epoch_ends_.empty();
}

std::vector<Message> Mailbox::take_letters() {
  std::lock_guard lock(mutex_);
  return std::exchange(letters_, {});
}

void Mailbox::wait_for_letters(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  const int64_t before = wakings_;
  news_.wait_until(lock, until, [&] { return !letters_.empty() || wakings_ != before; });
}

void Mailbox::wake() {
  std::lock_guard lock(mutex_);
  wake_all();
}
void Mailbox::wake_all() {
  for (Waiter* w : waiters_) {
    w->wake = true;
    w->woken.notify_one();
  }
  room_.notify_all();
  ++wakings_;
  news_.notify_all();
}

std::optional<Message> Mailbox::poll(const Key& k) {
  std::lock_guard lock(mutex_);
  std::optional<Message> m = parcels_.take(k);
  if (m) room_.notify_all();
  return m;
}

bool Mailbox::has(const Key& k) {
  std::lock_guard lock(mutex_);
  return parcels_.has(k);
}

void Mailbox::wait(const Key& k, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (parcels_.has(k) || !poisoned_.empty() || !refused_.empty() || !given_up_.empty() ||
      !epoch_ends_.empty())
    return;
  Waiter w{k, {}, false};
  const auto mine = waiters_.insert(waiters_.end(), &w);
  struct Gone {  // also where the wait throws, as in a worker that a simulated world kills
    Mailbox& box;
    Condition::Lock& lock;
    const std::list<Waiter*>::iterator mine;
    ~Gone() {
      if (!lock.owns_lock()) lock.lock();
      box.waiters_.erase(mine);
    }
  } gone{*this, lock, mine};
  w.woken.wait_until(lock, until, [&] { return w.wake; });
}

void Mailbox::check(const Key& k) const {
  {
    std::lock_guard lock(mutex_);
    if (!poisoned_.empty()) throw Error(poisoned_);
    if (!refused_.empty()) throw Disagreement(refused_);
    if (!given_up_.empty()) throw GivenUp(given_up_);
    if (!epoch_ends_.empty()) throw EpochEnds(epoch_ends_);
  }
  if (k.from != kAnyone) membership_.require(k.from);
}

std::optional<int64_t> Mailbox::later_step(const Key& k) const {
  std::lock_guard lock(mutex_);
  if (assemblies_.has(k)) return {};  // it may have come since the taker looked
  return parcels_.later_step(k);
}

std::string Mailbox::holds(uint32_t communicator, Rank from) const {
  std::lock_guard lock(mutex_);
  const std::string list = parcels_.list(communicator, from);
  return list.empty() ? "; nothing of it waits here" : "; what waits instead: " + list;
}

}  // namespace skein::comm
