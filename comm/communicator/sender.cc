// Sender: a payload is packed once for all peers that get the same, and sent piece by piece where it
// is copied anyway.
#include "comm/communicator/sender.h"

#include "comm/communicator/team.h"

#include <algorithm>
#include <cstring>

namespace skein::comm {
namespace {

template <class To, class From>
void scaled(To* y, float a, const From* x, int64_t n) {
  in_shares(n, n >= kTeamFrom, [=](int64_t from, int64_t to) {
#pragma omp simd
    for (int64_t i = from; i < to; ++i) y[i] = To(a * float(x[i]));
  });
}

}  // namespace

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

int64_t Sender::counted(const Header& h) const {
  return int64_t(double(h.bytes) *
                 g_.transport.stands_for(DType(h.dtype), h.bytes / size_of(DType(h.codec))));
}

Header Sender::header(Tag tag, int64_t step, const Tensor& x, DType wire, uint32_t layout) const {
  Header h;
  h.communicator = g_.id;
  h.epoch = g_.mailbox().membership().epoch();
  h.from = g_.transport.rank();
  h.tag = tag;
  h.step = step;
  h.bytes = x.size() * size_of(wire);
  h.codec = uint8_t(wire);
  h.dtype = uint8_t(x.dtype());
  h.layout = layout;
  return h;
}

void Sender::send(const std::vector<Share>& shares, Tag tag, int64_t step, const Tensor& x, uint32_t layout,
                  Memory memory) {
  const Tensor source = x.view({x.size()});
  const Header h = header(tag, step, source, x.dtype() == kF32 ? g_.options.wire : x.dtype(), layout);
  if (tag < kOwnTags) g_.meter->pushed(g_.id, h, g_.now());
  std::vector<bool> done(shares.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    if (done[i]) continue;
    std::vector<Share> same;
    for (size_t j = i; j < shares.size(); ++j)
      if (!done[j] && shares[j].factor == shares[i].factor) {
        same.push_back(shares[j]);
        done[j] = true;
      }
    const bool as_it_is = memory == Memory::kLent && shares[i].factor == 1 && h.codec == h.dtype;
    send_same(same, h, source, as_it_is);
  }
}

void Sender::send_buffer(const Share& share, Tag tag, int64_t step, const Tensor& filled) {
  const DType wire = g_.options.wire;
  CHECK(filled.rank() == 1 && filled.dtype() == wire, filled.shape(), filled.dtype(), wire);
  Header h = header(tag, step, filled, wire, layout_of(filled.size(), kF32));
  h.dtype = uint8_t(kF32);
  g_.meter->pushed(g_.id, h, g_.now());
  send_same({share}, h, filled, true);
}

struct Sender::Packed {
  Packed(Tensor memory) : payload(std::move(memory)) {}
  Packed(Packed&&) = default;
  ~Packed() {  // after an error, copies may still be writing to the memory that is freed here
    try {
      if (!come.empty()) come.back().sync();
    } catch (const Error&) {  // a lost device copies nothing any more
    }
  }
  Tensor payload;
  std::vector<Event> come;  // piece p has arrived after come[p]; empty for a payload of the host
};

// The host's memory for the payload of a header. From a device the payload is scaled and rounded there, and
// its copy begins here; a payload of the host is packed later, piece by piece.
Sender::Packed Sender::packed_for(const Header& h, const Tensor& source, float factor, bool as_it_is) {
  const DType wire = DType(h.codec);
  const Device device = source.device();
  if (device.is_host())
    return {as_it_is ? source : Tensor({source.size()}, wire, g_.transport.memory().allocator())};
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

// The shares have one factor. The payload leaves from a device's memory for the peers to which the transport
// carries it, and from the host's for the others.
void Sender::send_same(const std::vector<Share>& shares, const Header& h, const Tensor& source,
                       bool as_it_is) {
  std::vector<Share> carried, others;
  for (const Share& s : shares)
    (g_.transport.devices().carries(g_.world_rank(s.to), source.device()) ? carried : others).push_back(s);
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
    g_.meter->sent(counted(h), g_.world_rank(s.to) == g_.transport.rank(), g_.counted());
  }
}

// Where a payload goes in pieces, each is sent while the next is packed.
void Sender::send_from_host(const std::vector<Share>& shares, Header h, const Tensor& source, bool as_it_is) {
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
      if (g_.transport.in_pieces(g_.world_rank(s.to))) send_one(s, h, part);
  }
  h.piece = 0;
  h.pieces = 1;
  for (const Share& s : shares) {
    if (!g_.transport.in_pieces(g_.world_rank(s.to))) send_one(s, h, packed.payload);
    g_.meter->sent(counted(h), g_.world_rank(s.to) == g_.transport.rank(), g_.counted());
  }
}

void Sender::send_one(const Share& s, Header h, const Tensor& payload) {
  h.weight = s.weight;
  const Rank to = g_.world_rank(s.to);
  try {
    Endpoint& peer = payload.device().is_host() ? g_.transport.to(to) : g_.transport.devices().endpoint(to);
    peer.send(h, payload, after(g_.options.deadline));
  } catch (const PeerLost&) {
    g_.require_members();
    throw;
  }
}

}  // namespace skein::comm
