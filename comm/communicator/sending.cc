// Communicator: packing and unpacking, on the host or where a tensor lies; sending by the way that suits it.
#include <algorithm>
#include <cstring>

#include "comm/communicator/pending.h"

namespace skein::comm {
namespace {

constexpr int64_t kTeamFrom = 1 << 16;  // elements; a shorter loop is not worth waking a team

template <class To, class From>
void scaled(To* y, float a, const From* x, int64_t n) {
#pragma omp parallel for simd schedule(static) if (n >= kTeamFrom)
  for (int64_t i = 0; i < n; ++i) y[i] = To(a * float(x[i]));
}

// y <- a x, y of the wire's type. With a = 1 and equal types every bit arrives, whatever the type.
void pack(const Tensor& y, float a, const Tensor& x) {
  if (a == 1 && x.dtype() == y.dtype()) {
    if (x.bytes() > 0) std::memcpy(y.raw(), x.address(), size_t(x.bytes()));
    return;
  }
  visit_float(y.dtype(), [&](auto to) {
    visit_float(x.dtype(),
                [&](auto from) { scaled(y.data<decltype(to)>(), a, x.in<decltype(from)>(), x.size()); });
  });
}

}  // namespace

Header Communicator::header(Tag tag, int64_t step, const Tensor& x, DType wire, uint32_t layout) const {
  Header h;
  h.communicator = id_;
  h.epoch = transport_.mailbox().membership().epoch();
  h.from = transport_.rank();
  h.tag = tag;
  h.step = step;
  h.bytes = x.size() * size_of(wire);
  h.codec = uint8_t(wire);
  h.dtype = uint8_t(x.dtype());
  h.layout = layout;
  return h;
}

// Without `must_pack` the memory of x itself is handed over: it must not change before the peers have used
// it.
void Communicator::send_packed(const std::vector<Share>& shares, Tag tag, int64_t step, const Tensor& x,
                               uint32_t layout, bool must_pack) {
  const Tensor source = x.view({x.size()});
  const Header h = header(tag, step, source, x.dtype() == kF32 ? options_.wire : x.dtype(), layout);
  if (tag < kOwnTags) meter_->pushed(id_, h, now());
  std::vector<bool> done(shares.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    if (done[i]) continue;
    std::vector<Share> same;
    for (size_t j = i; j < shares.size(); ++j)
      if (!done[j] && shares[j].factor == shares[i].factor) {
        same.push_back(shares[j]);
        done[j] = true;
      }
    const bool as_it_is = !must_pack && shares[i].factor == 1 && h.codec == h.dtype;
    send_same(same, h, source, as_it_is);
  }
}

struct Communicator::Packed {
  Packed(Tensor memory) : payload(std::move(memory)) {}
  Packed(Packed&&) = default;
  ~Packed() {  // an error may leave copies on their way to what is freed now
    try {
      if (!come.empty()) come.back().sync();
    } catch (const Error&) {  // a lost device copies nothing any more
    }
  }
  Tensor payload;
  std::vector<Event> come;  // piece p is there after come[p]; empty on the host
};

// Where the payload of a header comes to lie. From a device it sets out here, scaled and rounded there; on the
// host it is packed later, piece by piece.
Communicator::Packed Communicator::packed_for(const Header& h, const Tensor& source, float factor,
                                              bool as_it_is) {
  const DType wire = DType(h.codec);
  const Device device = source.device();
  if (device.is_host())
    return {as_it_is ? source : Tensor({source.size()}, wire, transport_.memory().allocator())};
  Tensor there = source;
  if (factor != 1 || wire != source.dtype()) {
    there = Tensor({source.size()}, wire, device);
    scaled_copy(there, factor, source);
  }
  Packed packed(Tensor({source.size()}, wire, pinned_allocator()));
  Header part = h;
  for (part.piece = 0; part.piece < h.pieces; ++part.piece) {
    const Piece range = piece_of(part);
    const int64_t at = range.begin / size_of(wire), n = (range.end - range.begin) / size_of(wire);
    copy_bytes(packed.payload.view({n}, at), there.view({n}, at));
    packed.come.push_back(current_stream(device).record());
  }
  return packed;
}

// To peers with one factor: from a device's memory to whom the transport carries it, to the others from the
// host's.
void Communicator::send_same(const std::vector<Share>& shares, const Header& h, const Tensor& source,
                             bool as_it_is) {
  std::vector<Share> carried, others;
  for (const Share& s : shares)
    (transport_.devices().carries(world_rank(s.to), source.device()) ? carried : others).push_back(s);
  if (!others.empty()) send_from_host(others, h, source, as_it_is);
  if (carried.empty()) return;
  Tensor there = source;
  if (!as_it_is) {
    there = Tensor({source.size()}, DType(h.codec), source.device());
    if (shares[0].factor == 1 && h.codec == h.dtype)
      copy_bytes(there, source);
    else
      scaled_copy(there, shares[0].factor, source);
  }
  for (const Share& s : carried) {
    send_one(s, h, there);
    meter_->sent(h.bytes);
  }
}

// Where payloads go in pieces, each is sent while the next is packed.
void Communicator::send_from_host(const std::vector<Share>& shares, Header h, const Tensor& source,
                                  bool as_it_is) {
  const DType wire = DType(h.codec);
  h.pieces = uint32_t(std::max<int64_t>(1, (h.bytes + kPieceBytes - 1) / kPieceBytes));
  const Packed packed = packed_for(h, source, shares[0].factor, as_it_is);
  for (h.piece = 0; h.piece < h.pieces; ++h.piece) {
    const Piece range = piece_of(h);
    const int64_t at = range.begin / size_of(wire), n = (range.end - range.begin) / size_of(wire);
    const Tensor part = packed.payload.view({n}, at);
    if (!packed.come.empty())
      packed.come[h.piece].sync();
    else if (!as_it_is)
      pack(part, shares[0].factor, source.view({n}, at));
    for (const Share& s : shares)
      if (transport_.in_pieces(world_rank(s.to))) send_one(s, h, part);
  }
  h.piece = 0;
  h.pieces = 1;
  for (const Share& s : shares) {
    if (!transport_.in_pieces(world_rank(s.to))) send_one(s, h, packed.payload);
    meter_->sent(h.bytes);
  }
}

void Communicator::send_one(const Share& s, Header h, const Tensor& payload) {
  h.weight = s.weight;
  const Rank to = world_rank(s.to);
  try {
    Endpoint& door = payload.device().is_host() ? transport_.to(to) : transport_.devices().endpoint(to);
    door.send(h, payload, after(options_.deadline));
  } catch (const PeerLost&) {
    require_members();
    throw;
  }
}

void Communicator::push(const std::vector<Share>& shares, Tag tag, int64_t step, const Tensor& x) {
  CHECK(tag < kOwnTags && step >= 0, tag, step);
  send_packed(shares, tag, step, x, layout_of(x.size(), x.dtype()), true);
}
void Communicator::push(Rank to, Tag tag, int64_t step, float factor, const Tensor& x, double weight) {
  push({{to, factor, weight}}, tag, step, x);
}
void Communicator::answer(const Message& m, const Tensor& x, double weight) {
  push(m.from, m.tag, m.step, 1, x, weight);
}

Message Communicator::unpack(Message m) const {
  if (m.codec != m.dtype && !m.payload.device().is_host()) {
    m.payload = staging_->converted(DType(m.dtype), m.payload);
  } else if (m.codec != m.dtype) {
    Tensor y(m.payload.shape(), DType(m.dtype));
    pack(y, 1, m.payload);
    m.payload = std::move(y);
  }
  m.from = Rank(std::find(members_.begin(), members_.end(), m.from) - members_.begin());
  return m;
}

}  // namespace skein::comm
