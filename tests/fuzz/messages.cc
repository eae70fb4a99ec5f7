// What other processes send: to the mailbox, at the meeting, and to the inbox.
#include <cstring>

#include "comm/inbox/inbox_wire.h"
#include "comm/join/door.h"
#include "comm/mailbox.h"
#include "comm/membership/succession.h"
#include "engine/device/memory.h"
#include "engine/vectors/codec.h"
#include "optim/leaders/lease_words.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

using comm::Header;

constexpr int kRanks = 4;
constexpr int64_t kBound = 1 << 22, kLongestPayload = 1 << 21;

// All fields as they come, or likely numbers.
Header header_of(Input& in, uint8_t how) {
  Header h = in.number<Header>();
  if (how & 1) {
    h.kind = comm::Kind(uint16_t(h.kind) % 6), h.from %= kRanks + 1;
    h.tag %= 3, h.step %= 3, h.communicator %= 2;
    h.codec %= 8, h.dtype %= 8;
    h.bytes &= kBound - 1;
    h.piece %= 8;
    if (how & 2) h.pieces = uint32_t((h.bytes + comm::kPieceBytes - 1) / comm::kPieceBytes);
  }
  h.magic = Header::kMagic, h.version = Header::kVersion;
  if (!(how & 4)) h.epoch = 1;
  return h;
}

// The bytes that a piece of this header has; -1: none.
int64_t length_of(const Header& h) {
  if (h.bytes < 0 || h.pieces == 0 || h.piece >= h.pieces) return -1;
  const comm::Piece p = piece_of(h);
  return p.end - p.begin;
}

// The mailbox as a transport that receives payloads into the memory of their message
// uses it (ucx_arrivals.cc).
class Arrivals {
 public:
  void arrive(const Header& h, const Tensor& payload, bool later) {
    if (h.kind != comm::Kind::kData) return void(box_.put({h, payload.clone()}));
    if (h.piece == 0 && !box_.room(h.from, h.bytes)) return;
    const Tensor landing =
        payload.bytes() == length_of(h) ? box_.landing(h, skein::allocator(kCpu)) : Tensor();
    if (!landing) {
      comm::Message m{h, payload.clone()};
      m.pieces = 1;
      box_.put(std::move(m));
      return;
    }
    require(landing.bytes() == payload.bytes(), "a piece has a place of another size");
    flying_.emplace_back(h, landing);
    if (!later) land(flying_.size() - 1);
  }
  void land(size_t which) {
    if (flying_.empty()) return;
    const auto at = flying_.begin() + ptrdiff_t(which % flying_.size());
    const auto [h, landing] = *at;
    flying_.erase(at);
    if (landing.bytes() > 0) {  // its first and its last byte
      auto* const to = static_cast<uint8_t*>(landing.raw());
      to[0] = to[landing.bytes() - 1] = 1;
    }
    box_.landed(h, landing);
  }
  void take(const Header& h) {
    const auto m = box_.poll({h.communicator, h.from, h.tag, h.step});
    require(!m || m->payload.bytes() == m->bytes, "a message is not as long as it says");
    (void)box_.holds(h.communicator, comm::kAnyone);
  }
  comm::Mailbox& box() { return box_; }

 private:
  comm::Mailbox box_{0, kRanks, kBound};
  std::vector<std::pair<Header, Tensor>> flying_;
};

}  // namespace

void mailbox(Input in) {
  may_refuse([&] {
    Arrivals a;
    for (int n = 0; in.left() > 0 && n < 24; ++n) {
      const uint8_t how = in.byte();
      const Header h = header_of(in, how);
      if (how & 8) a.land(in.byte());
      if (h.from < 0 || h.from >= kRanks) continue;  // transports drop it
      const int64_t length = how & 16 ? length_of(h) : in.number<uint16_t>();
      if (length < 0 || length > kLongestPayload) continue;
      static const Tensor bytes = Tensor::zeros({kLongestPayload}, kU8);
      a.arrive(h, bytes.view({length}, 0), how & 32);
      a.take(h);
    }
  });
}

void notice(Input in) {
  may_refuse([&] {
    comm::Mailbox box(0, kRanks, kBound);
    for (int n = 0; in.left() > 0 && n < 8; ++n) {
      Header h = header_of(in, in.byte());
      if (h.kind == comm::Kind::kData) h.kind = comm::Kind::kGivenUp;
      const std::string words = in.some(in.byte());
      if (in.byte() & 1) h.bytes = int64_t(words.size());
      box.put({h, Tensor::of<uint8_t>({int64_t(words.size())}, {words.begin(), words.end()})});
      require(box.membership().alive(0), "a rank counts itself as lost");
    }
    box.check({1, comm::kAnyone, 7, 0});
  });
}

void lease_words(Input in) {
  may_refuse([&] {
    const uint8_t how = in.byte();
    comm::Message m;
    const std::string bytes = in.rest();
    const DType t = how & 8 ? kU8 : kI64;
    m.payload = Tensor({int64_t(bytes.size()) / size_of(t)}, t);
    if (m.payload.bytes() > 0) std::memcpy(m.payload.raw(), bytes.data(), size_t(m.payload.bytes()));
    if (how % 4 == 0) (void)optim::lease::word_of(m);
    if (how % 4 == 1) (void)optim::lease::standing_of(m);
    if (how % 4 > 1 && optim::lease::is_answer(m))
      require(optim::lease::answer_of(m).next <= optim::lease::Next::kMet, "an answer that there is not");
  });
}

// Codes of so many numbers, from a peer; and codes of our own numbers, which both ends read as the same.
void codes(Input in) {
  constexpr Codec kCodecs[] = {{Codec::kInt8}, {Codec::kInt4}, {Codec::kTopK, 0.01}, {Codec::kTopK, 1}};
  const uint8_t how = in.byte();
  const Codec& codec = kCodecs[how & 3];
  const int64_t n = in.number<uint16_t>() % (how & 4 ? 6000 : 700), size = codec.bytes(n);
  const std::string bytes = in.some(size_t(how & 4 ? size : 4 * n));
  const auto filled = [&](int64_t count, DType t) {
    Tensor x = Tensor::zeros({count}, t);
    if (!bytes.empty()) std::memcpy(x.raw(), bytes.data(), std::min(bytes.size(), size_t(x.bytes())));
    return x;
  };
  may_refuse([&] {
    const Tensor y = Tensor::zeros({n}), z = Tensor::zeros({n});
    if (how & 4) return decode_add(codec, y, filled(size, kU8));
    const Tensor said({size}, kU8);
    encode(codec, said, filled(n, kF32), Tensor::zeros({n}), y);
    decode(codec, z, said);
    for (int64_t i = 0; i < n; ++i) {
      const float a = y.data<float>()[i], b = z.data<float>()[i];
      require(a == b || (a != a && b != b), "the two ends of a message understand it differently");
    }
  });
}

void datagram(Input in) {
  static const comm::Secret key(std::string(32, 'k'));
  static const std::string salt(16, 's');
  static const comm::Seal seal(key, salt);
  const uint8_t how = in.byte();
  if (how & 1) {
    may_refuse([&] {
      const comm::Invitation i = comm::Invitation::read(in.rest());
      require(i.port > 0 && i.port < 65536, "an impossible port");
      require(comm::Invitation::read(i.words()).words() == i.words(), "it reads back as another one");
    });
    return;
  }
  comm::Datagram d = in.number<comm::Datagram>();
  const bool exact = how & 2;
  if (exact) d.magic = comm::Datagram::kMagic, d.version = comm::Datagram::kVersion, seal.sign(d);
  std::string bytes(reinterpret_cast<const char*>(&d), sizeof d);
  if (how & 4) bytes += in.rest();
  if (how & 8) bytes.resize(bytes.size() / 2);
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  comm::Datagram got, asked;
  if (judge(at, bytes.size(), seal, kRanks, got) == comm::Verdict::kGenuine) {
    require(exact, "a datagram without the key was believed");
    require(got.worker >= 0 && got.worker < kRanks, "a worker that there is not");
  }
  asked.worker = 1, asked.sequence = 7;
  require(!acknowledges(at, bytes.size(), asked, seal) || exact, "an acknowledgement without the key");
}

void application(Input in) {
  const std::string bytes = in.rest();
  const auto a = comm::read_application(bytes);
  require(!a || comm::write_application(*a) == bytes, "an application is written as another one");
}

// The first byte says whether there is a register, and whether this member proposes.
void succession(Input in) {
  const uint8_t how = in.byte();
  const comm::View now{.epoch = 2, .members = {{1, "a"}, {2, "b"}, {3, "c"}}, .step = 5};
  comm::Succession s(2, now, {.has_register = (how & 1) != 0});
  if (how & 2) s.suspect(1);
  may_refuse([&] {
    double time = 0;
    for (s.tick(time); in.left() > 0; s.tick(time += 0.2)) {
      const comm::MemberId from = in.byte();
      const std::string bytes = in.some(in.number<uint16_t>());
      const auto content = comm::Content::read(bytes);
      require(!content || content->write() == bytes, "a letter is written as another one");
      s.receive(from, bytes);
      if (const auto view = s.wants_register()) s.register_says(*view);
      require(!s.next() || (s.frozen() && s.excluded() == !s.next()->has(2)), "a view of two minds");
    }
  });
}

}  // namespace skein::fuzz
