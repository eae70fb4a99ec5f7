// What members of a job tell each other: in collectives, to newcomers, and in answer to requests.
#include <sys/socket.h>

#include <cstring>
#include <deque>

#include "comm/average/averager.h"
#include "comm/communicator/coding.h"
#include "comm/communicator/op.h"
#include "comm/communicator/words.h"
#include "comm/inbox/inbox_client.h"
#include "comm/join/line.h"
#include "comm/membership/view.h"
#include "engine/device/memory.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

// Rank `me` of two. What it sends is dropped, and what it receives has already come.
class Alone final : public comm::Transport, public comm::Endpoint {
 public:
  explicit Alone(comm::Rank me) : me_(me) {}
  comm::Rank rank() const override { return me_; }
  int size() const override { return 2; }
  comm::Endpoint& to(comm::Rank) override { return *this; }
  comm::Mailbox& mailbox() override { return box_; }
  void wait(const comm::Key&, comm::Clock::time_point) override {}
  void send(const comm::Header&, Tensor, comm::Clock::time_point) override {}
  const char* name() const override { return "alone"; }

 private:
  const comm::Rank me_;
  comm::Mailbox box_{me_, 2};
};

constexpr int64_t kLarge = 2050;      // elements that are summed by their owners
constexpr int64_t kCoded = 5000;      // elements; each of the two ranks owns some of their chunks
constexpr int64_t kFirstPart = 4096;  // of these, rank 0's
constexpr Codec kCodecs[] = {{Codec::kInt8}, {Codec::kInt4}, {Codec::kTopK, 0.001}};

// A number of the input, or what one of the collectives below expects.
uint32_t layout_of_one(Input& in, int64_t elements) {
  using namespace comm;
  const uint8_t which = in.byte();
  const uint32_t root = uint32_t(which >> 7) << 8;
  switch (which % 8) {
    case 0:
      return layout_of(1, kI64, kBroadcast + root);
    case 1:
      return layout_of(elements, kU8, kBroadcast + root);
    case 2:
      return layout_of(0, kI64, kGather + root);
    case 3:
      return layout_of(0, kU8, kGather + root);
    case 4:
      return layout_of(4, kI64, kBroadcast);
    case 5:
      return layout_of(which & 64 ? kLarge : 4, kF32, kReduceShare + root);
    case 6:
      return layout_of(kLarge, kF32, kReduceSum + root);
    default: {
      if (!(which & 64)) return in.number<uint32_t>();
      const auto purpose = which & 8 ? kCodedShare : kCodedSum;
      const uint32_t kind = kCodecs[(which >> 4 & 3) % 3].kind;
      return layout_of(kCoded, kU8, uint32_t(purpose) + root + (kind << 28));
    }
  }
}

void deliver(Input& in, Alone& here) {
  comm::Header h;
  h.communicator = 1, h.epoch = 1, h.from = 1 - here.rank();
  const uint8_t how = in.byte();
  h.tag = comm::kOwnTags + how % 2;
  if (how & 2) h.tag = in.byte();
  h.step = int64_t(how >> 2 & 3) << 24;
  h.codec = in.byte() % kDTypes, h.dtype = how & 16 ? in.byte() % kDTypes : h.codec;
  std::string bytes = in.some(in.byte());
  if (how & 32) bytes.resize(in.number<uint16_t>());
  if (how & 64)
    bytes.resize(size_t(kCodecs[in.byte() % 3].bytes(in.byte() & 1 ? kFirstPart : kCoded - kFirstPart)));
  h.bytes = int64_t(bytes.size());
  h.layout = layout_of_one(in, h.bytes);
  const Tensor landing = here.mailbox().landing(h, skein::allocator(kCpu));
  if (!landing) return;
  if (!bytes.empty()) std::memcpy(landing.raw(), bytes.data(), bytes.size());
  here.mailbox().landed(h, landing);
}

void take_part(comm::Communicator& c, uint8_t how) {
  const comm::Rank root = how >> 3 & 1;
  switch (how % 7) {
    case 0:
      for (const auto& row : comm::gather_numbers(c, {1, 2})) require(row.size() == 2, "a row of numbers");
      break;
    case 1:
      (void)comm::gather_text(c, "mine", root);
      break;
    case 2:
      (void)comm::broadcast_text(c, "mine", root);
      break;
    case 3:
      c.mean(Tensor::zeros({4})).wait();
      break;
    case 4:
      c.mean(Tensor::zeros({kLarge})).wait();
      break;
    case 5:
      for (const auto& row : comm::tell({c}, {1, 2}, 0)) require(row.size() == 2, "a row of what was told");
      break;
    case 6:
      c.mean(Tensor::zeros({kCoded}), {kCodecs[(how >> 4) % 3], Tensor::zeros({kCoded})}).wait();
  }
}

// Datagrams that have already come.
struct Port final : comm::DatagramPort {
  std::deque<Arrived> arrived;
  int number() const override { return 1; }
  void send(const void*, size_t, const sockaddr_in&) override {}
  std::optional<Arrived> receive() override {
    if (arrived.empty()) return {};
    Arrived a = std::move(arrived.front());
    arrived.pop_front();
    return a;
  }
  void wait(comm::Clock::time_point) override {}
  void wake() override {}
};

// A world of one thread. Every look at the clock finds it so much later, so that nothing has to
// be waited for.
struct Impatient final : comm::Timeline {
  const comm::Clock::duration tick;
  mutable comm::Clock::time_point time;
  std::unique_ptr<Port> port = std::make_unique<Port>();
  explicit Impatient(std::chrono::milliseconds t) : tick(t) { comm::timeline_here = this; }
  ~Impatient() override { comm::timeline_here = nullptr; }
  comm::Clock::time_point now() const override { return time += tick; }
  void sleep(comm::Clock::time_point, Ending) override {}
  ThreadNumber self() const override { return 0; }
  void rouse(ThreadNumber) override {}
  ThreadNumber enlist() override { return 0; }
  void live(ThreadNumber, const std::function<void()>& f) override { f(); }
  void await_end(ThreadNumber) override {}
  std::unique_ptr<comm::DatagramPort> open_port() override { return std::move(port); }
};

}  // namespace

// The first byte says which rank this is, and what it takes part in: up to three collectives, one
// after the other.
void collectives(Input in) {
  const uint8_t who = in.byte(), what[] = {in.byte(), in.byte(), in.byte()};
  const Impatient world(std::chrono::milliseconds(100));
  Alone here(who & 1);
  comm::Communicator c(here, {.deadline = 0, .wire = who & 2 ? kBF16 : kF32});
  while (in.left() > 0) deliver(in, here);
  may_refuse([&] {
    for (const uint8_t how : what) take_part(c, how);
  });
}

// The first byte says whether what follows is a string after its length, or both as they come.
void welcome(Input in) {
  static const comm::Secret key(std::string(comm::kCipherKeyBytes, 'c'));
  const auto cipher = [] { return comm::Cipher(comm::CipherKind::kChaCha20Poly1305, key, true); };
  const Impatient world(std::chrono::milliseconds(0));
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  comm::Line far{comm::Fd(ends[0]), cipher(), cipher()}, near{comm::Fd(ends[1]), cipher(), cipher()};
  const bool whole = in.byte() & 1;
  const auto soon = comm::after(1);
  if (whole) {
    const std::string said = in.rest();
    require(far.write_string(said, soon), "too long for a socket");
  } else {
    for (int n = 0; in.left() > 0 && n < 32; ++n)
      require(far.write(in.some(in.byte()), soon), "too long for a socket");
  }
  far.socket = {};
  may_refuse([&] {
    std::string told;
    if (!near.read_string(told, soon, 1 << 20)) return;
    const auto view = comm::View::read(told);
    require(!view || view->write() == told, "a view is written as another one");
  });
}

// Replies to a request of worker 1 by an inbox, or from elsewhere.
void replies(Input in) {
  static const comm::Secret key(std::string(32, 'k'));
  static const comm::Invitation inbox{std::string(16, 's'), 500, {"10.0.0.1", "10.0.0.2"}};
  static const comm::Seal seal(key, inbox.salt);
  Impatient world(std::chrono::milliseconds(0));
  auto& arrived = world.port->arrived;
  bool answered = false;
  const int64_t sequence = int64_t(1'577'836'800) * 1'000'000 + 1;  // at this moment
  while (in.left() > 0) {
    const uint8_t how = in.byte();
    auto d = in.number<comm::Datagram>();
    if (how & 1) d = {.kind = uint16_t(3 | comm::kAcknowledged), .worker = 1, .sequence = sequence};
    if (how & 2) d.argument = in.byte(), seal.sign(d);
    if (how & 4) d.magic ^= in.byte();
    if (how & 8) reinterpret_cast<uint8_t*>(&d)[in.byte() % sizeof d] ^= in.byte();
    std::vector<uint8_t> bytes(sizeof d);
    std::memcpy(bytes.data(), &d, sizeof d);
    if (how & 16) bytes.resize(in.byte());
    answered = answered || (bytes.size() == sizeof d && seal.genuine(d) && d.sequence == sequence &&
                            d.worker == 1 && d.kind == (3 | comm::kAcknowledged));
    sockaddr_in from{};
    from.sin_addr.s_addr = in.byte();
    arrived.push_back({std::move(bytes), from});
  }
  comm::InboxClient client(inbox, key, 1);
  require(client.begin(3) == sequence, "a request of another moment");
  require(!client.acknowledged() || answered, "a reply without the key was believed");
}

}  // namespace skein::fuzz
