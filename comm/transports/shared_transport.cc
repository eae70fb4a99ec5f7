// Shared transport: rings, bells and windows in memory that the processes of one host have in common.
#include "comm/transports/shared_transport.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>

#include "comm/join/handshake.h"
#include "engine/words/host_memory.h"

namespace skein::comm {
namespace {

constexpr uint64_t kSlots = 512;     // messages on their way from one rank to another
constexpr uint32_t kTickets = 2048;  // payloads of one sender that one receiver may hold
constexpr int64_t kInline = 48;      // bytes that travel in the entry itself
constexpr uint32_t kNoTicket = ~0u;
constexpr auto kLongestSleep = std::chrono::milliseconds(5);  // between looks for deaths
// How long to yield before sleeping: about as long as a wake-up takes. On a busy machine one yield
// may take longer.
constexpr auto kYielding = std::chrono::microseconds(60);

struct Entry {
  Header header;
  int64_t offset;  // where the payload lies in the sender's arena
  uint32_t ticket, unused;
  char words[kInline];
};
static_assert(sizeof(Entry) == 128);

struct Ring {  // one writer, one reader
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  Entry entries[kSlots];
};
struct Tickets {
  std::atomic<uint8_t> finished[kTickets];
};

int futex(std::atomic<uint32_t>& word, int op, uint32_t value, const timespec* timeout) {
  return int(syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), op, value, timeout, nullptr, 0));
}

}  // namespace

struct SharedEndpoints::Control {
  alignas(64) std::atomic<uint32_t> bell;  // rung after every change that a thread may wait for
  alignas(64) std::atomic<uint32_t> sleepers;
  static int64_t bytes(int ranks) {
    return int64_t(sizeof(Control) + size_t(ranks) * (sizeof(Ring) + sizeof(Tickets)));
  }
  Ring& from(Rank r) { return reinterpret_cast<Ring*>(this + 1)[r]; }
  Tickets& tickets(int ranks, Rank to) { return reinterpret_cast<Tickets*>(&from(ranks))[to]; }

  void ring() {
    bell.fetch_add(1);
    if (sleepers.load() > 0) futex(bell, FUTEX_WAKE, INT_MAX, nullptr);
  }
  void sleep(uint32_t seen, std::chrono::nanoseconds longest) {
    const timespec t{0, std::max<long>(0, long(longest.count()))};
    sleepers.fetch_add(1);
    if (bell.load() == seen) futex(bell, FUTEX_WAIT, seen, &t);
    sleepers.fetch_sub(1);
  }
};

// A payload in a peer's arena, for as long as this process holds it; then the sender may use
// the memory again.
struct Loan {
  std::shared_ptr<Mapping> memory;
  std::atomic<uint8_t>& finished;
  SharedEndpoints::Control& owner;
  Loan(std::shared_ptr<Mapping> m, std::atomic<uint8_t>& f, SharedEndpoints::Control& o)
      : memory(std::move(m)), finished(f), owner(o) {}
  ~Loan() {
    finished.store(1, std::memory_order_release);
    owner.ring();
  }
};

class SharedEndpoints::Peer final : public Endpoint {
 public:
  Peer(SharedEndpoints& all, Rank me, Rank peer, int size, const Fd& file)
      : all_(all),
        me_(me),
        peer_(peer),
        size_(size),
        memory_(std::make_shared<Mapping>(file, all.arena_->mapping()->bytes)),
        theirs_(*reinterpret_cast<Control*>(memory_->base)),
        ring_(theirs_.from(me)),
        tickets_(all.control_->tickets(size, peer)),
        lent_(kTickets) {}
  const char* name() const override { return "shared"; }
  const std::shared_ptr<Mapping>& memory() const { return memory_; }

  // While a message waits for room, others may pass it, such as letters of another thread.
  void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
    if (h.bytes > kInline && !all_.offset_of(payload)) payload = in_arena(payload);
    std::unique_lock lock(mutex_);
    uint32_t ticket = kNoTicket;
    const auto has_room = [&] {
      if (ring_.written.load() - ring_.read.load(std::memory_order_acquire) >= kSlots) return false;
      return h.bytes <= kInline || (ticket = free_ticket(h)) != kNoTicket;
    };
    wait_until(has_room, lock, h, deadline);
    Entry& e = ring_.entries[ring_.written.load() % kSlots];
    e.header = h;
    e.ticket = ticket;
    e.offset = ticket == kNoTicket ? 0 : *all_.offset_of(payload);
    if (ticket == kNoTicket && h.bytes > 0) std::memcpy(e.words, payload.raw(), size_t(h.bytes));
    if (ticket != kNoTicket) lend(ticket, std::move(payload));
    ring_.written.fetch_add(1, std::memory_order_release);
    theirs_.ring();
  }

  // The receiving side: reads what this peer wrote into our arena.
  Message read(const Entry& e) {
    Message m{e.header, {}};
    const bool plain = m.codec < kDTypes && m.bytes >= 0;
    CHECK(plain && m.from == peer_, "a damaged entry in the ring of rank", peer_);
    const DType t = DType(m.codec);
    const int64_t n = m.bytes / size_of(t);
    if (e.ticket == kNoTicket) {
      CHECK(m.bytes <= kInline, "a damaged entry in the ring of rank", peer_);
      m.payload = Tensor({n}, t);
      if (m.bytes > 0) std::memcpy(m.payload.raw(), e.words, size_t(m.bytes));
      return m;
    }
    CHECK(e.ticket < kTickets && m.bytes <= memory_->bytes && e.offset >= 0 &&
              e.offset <= memory_->bytes - m.bytes,
          "a damaged entry of rank", peer_);
    const auto loan =
        std::make_shared<Loan>(memory_, theirs_.tickets(size_, me_).finished[e.ticket], theirs_);
    m.payload = Tensor({n}, t, std::make_shared<Storage>(memory_->base + e.offset, m.bytes, kCpu, loan));
    return m;
  }
  void ring_their_bell() { theirs_.ring(); }

 private:
  Tensor in_arena(const Tensor& x) {
    Tensor y(x.shape(), x.dtype(), *all_.arena_);
    copy_bytes(y, x);
    return y;
  }
  void lend(uint32_t ticket, Tensor payload) {
    tickets_.finished[ticket].store(0, std::memory_order_relaxed);
    lent_bytes_ += payload.bytes();
    lent_[ticket] = std::move(payload);
    open_.push_back(ticket);
  }
  // Takes back what the receiver has finished with. Returns a ticket if the payload of this message may be
  // lent, too. What is no data is short, and does not wait for data to be taken; nor does the last data of an
  // epoch that ends, of which the receiver may take nothing more.
  uint32_t free_ticket(const Header& h) {
    std::erase_if(open_, [&](uint32_t t) {
      if (!tickets_.finished[t].load(std::memory_order_acquire)) return false;
      lent_bytes_ -= lent_[t].bytes();
      lent_[t] = {};
      return true;
    });
    const bool waits = h.kind == Kind::kData && !all_.box_.epoch_ends();
    const bool too_much = waits && lent_bytes_ + h.bytes > all_.in_flight_;
    if (!open_.empty() && (too_much || open_.size() == kTickets)) return kNoTicket;
    while (lent_[next_ % kTickets]) ++next_;
    return next_++ % kTickets;
  }
  template <class Ready>
  void wait_until(Ready ready, std::unique_lock<std::mutex>& lock, const Header& h,
                  Clock::time_point deadline) {
    for (auto looked = Clock::now(); !ready();) {
      deadline += absence(looked);
      all_.box_.membership().require(peer_);
      if (Clock::now() > deadline)
        throw Timeout(peer_, text("rank ", peer_, " has not taken what rank ", me_, " sent it (now tag ",
                                  h.tag, ", step ", h.step, "): ", lent_bytes_, " bytes are on their way"));
      const uint32_t seen = all_.control_->bell.load();
      if (ready()) return;
      lock.unlock();
      all_.live_.check();
      for (Rank r = 0; r < size_; ++r) all_.drain(r);
      all_.control_->sleep(seen, kLongestSleep);
      lock.lock();
    }
  }

  SharedEndpoints& all_;
  const Rank me_, peer_;
  const int size_;
  const std::shared_ptr<Mapping> memory_;
  Control& theirs_;
  Ring& ring_;        // in their arena: the messages we send
  Tickets& tickets_;  // in our arena: which payloads they have finished with
  std::mutex mutex_;
  std::vector<Tensor> lent_;
  std::vector<uint32_t> open_;
  int64_t lent_bytes_ = 0;
  uint32_t next_ = 0;
};

SharedEndpoints::SharedEndpoints(Exchange& exchange, const std::vector<int>& domains, Mailbox& box,
                                 Liveness& live, const TransportOptions& o)
    : box_(box),
      live_(live),
      in_flight_(o.in_flight),
      domains_(domains),
      arena_(
          new Arena(arena_bytes(std::count(domains.begin(), domains.end(), domains[size_t(exchange.rank())]),
                                host_memory()),
                    Control::bytes(exchange.size()), exchange.rank())),
      control_(reinterpret_cast<Control*>(arena_->mapping()->base)),
      peers_(size_t(exchange.size())) {
  const Rank me = exchange.rank();
  const std::string name = "skein-" + hex(random_bytes(16));
  const Fd listener = listen_unix(name, 1024);
  const std::vector<std::string> all = exchange.all_gather(name);
  HandshakeOptions m{.mine = {.key = o.key, .me = me, .size = exchange.size(), .epoch = o.epoch},
                     .peers = {},
                     .purposes = {Purpose::kMemory},
                     .dial = [&](Rank r) { return connect_unix(all[size_t(r)]); },
                     .welcome = same_user,
                     .deadline = after(o.deadline),
                     .in_vain = o.in_vain};
  for (Rank r = 0; r < exchange.size(); ++r)
    if (r != me && domain(r) == domain(me)) m.peers.push_back(r);
  Lines met = handshake(m, listener, box.refusals().callers);
  for (auto& [who, line] : met)
    if (!send_fd(line.socket, arena_->file().get()))
      throw PeerLost(who.first, text("rank ", who.first, " hung up while we met"));
  for (auto& [who, line] : met) {
    const Rank r = who.first;
    const Fd file = receive_fd(line.socket, m.deadline);
    if (!file) throw PeerLost(r, text("rank ", r, " did not show its memory while we met"));
    peers_[size_t(r)] = std::make_unique<Peer>(*this, me, r, exchange.size(), file);
    live.watch(r, std::move(line.socket));
  }
}

SharedEndpoints::~SharedEndpoints() = default;

Endpoint& SharedEndpoints::to(Rank r) {
  CHECK(peers_.at(size_t(r)), "rank", r, "is not of this host");
  return *peers_[size_t(r)];
}

void SharedEndpoints::progress() {
  for (Rank r = 0; r < Rank(peers_.size()); ++r) drain(r);
  std::vector<std::pair<Rank, std::string>> refusals;
  {
    const std::lock_guard lock(mutex_);
    refusals.swap(refusals_);
  }
  for (const auto& [r, why] : refusals) {
    const Message m = box_.refusal(why);
    try {
      to(r).send(m, m.payload, after(1));
    } catch (const Error&) {  // it is lost, or takes nothing; the next wait here says why it was refused
    }
  }
}

void SharedEndpoints::drain(Rank from) {
  if (!peers_[size_t(from)]) return;
  Ring& ring = control_->from(from);
  if (ring.read.load(std::memory_order_relaxed) == ring.written.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  Peer& peer = *peers_[size_t(from)];
  uint64_t at = ring.read.load();
  const uint64_t end = ring.written.load(std::memory_order_acquire);
  for (; at != end; ++at) {
    const Entry& e = ring.entries[at % kSlots];
    if (e.header.kind == Kind::kData && !box_.room(from, e.header.bytes)) break;
    if (const std::string why = box_.put(peer.read(e)); !why.empty()) refusals_.emplace_back(from, why);
    const bool was_full = ring.written.load() - at == kSlots;
    ring.read.store(at + 1, std::memory_order_release);
    if (was_full) peer.ring_their_bell();
  }
  control_->ring();  // another thread of this process may wait for what came
}

void SharedEndpoints::wake() { control_->ring(); }

void SharedEndpoints::nap(const Key& k, Clock::time_point until) {
  const uint32_t seen = control_->bell.load();
  if (box_.has(k)) return;  // another thread's progress brought it
  for (const auto& d : peers_)
    if (d) {
      const Ring& ring = control_->from(Rank(&d - peers_.data()));
      if (ring.read.load() != ring.written.load()) return;
    }
  for (const auto began = Clock::now(); Clock::now() - began < kYielding;) {
    if (control_->bell.load() != seen) return;
    sched_yield();
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now());
  control_->sleep(seen, std::min<std::chrono::nanoseconds>(left, kLongestSleep));
}

std::optional<int64_t> SharedEndpoints::offset_of(const Tensor& x) const {
  if (!x.device().is_host() || !arena_->mapping()->holds(x.raw(), x.bytes())) return {};
  return arena_->offset_of(x.raw());
}

Tensor SharedEndpoints::window(Rank peer, int64_t offset, int64_t elements, DType t) const {
  CHECK(peers_.at(size_t(peer)), "rank", peer, "is not of this host");
  const std::shared_ptr<Mapping>& memory = peers_[size_t(peer)]->memory();
  const int64_t bytes = elements * size_of(t);
  CHECK(offset >= 0 && offset + bytes <= memory->bytes, "a window beyond the memory of rank", peer, offset,
        bytes);
  return Tensor({elements}, t, std::make_shared<Storage>(memory->base + offset, bytes, kCpu, memory));
}

}  // namespace skein::comm
