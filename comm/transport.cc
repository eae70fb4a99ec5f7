// What all transports share: pieces, layout hashes, and the memories of a transport that has none of its own.
#include "comm/transport.h"

#include <algorithm>

#include "engine/words/find_row.h"
#include "engine/words/hash.h"

namespace skein::comm {

Message notice(Kind kind, Rank from, uint32_t epoch, const Tensor& payload) {
  Message m;
  m.kind = kind;
  m.from = from;
  m.epoch = epoch;
  m.payload = payload;
  m.bytes = payload.bytes();
  m.codec = m.dtype = uint8_t(payload.dtype());
  return m;
}

Piece piece_of(const Header& h) {
  if (h.pieces == 1) return {0, h.bytes};
  const int64_t begin = int64_t(h.piece) * kPieceBytes;
  return {begin, std::min(begin + kPieceBytes, h.bytes)};
}

std::optional<int64_t> round_of(const Header& h) {
  if (h.kind != Kind::kData || h.tag >= kOwnTags || !(h.tag & kRounds)) return {};
  return h.step;
}

std::string contradiction(const Header& h) {
  if (h.codec >= kDTypes || h.dtype >= kDTypes) return text("unknown type ", int(h.codec), "/", int(h.dtype));
  const DType codec = DType(h.codec), dtype = DType(h.dtype);
  if (codec != dtype && !(is_float(codec) && is_float(dtype)))
    return text(codec, " in place of ", dtype, "; do all run the same version?");
  if (h.bytes < 0 || h.bytes % size_of(codec) || h.pieces == 0 || h.piece >= h.pieces ||
      (h.pieces > 1 && int64_t(h.pieces) != (h.bytes + kPieceBytes - 1) / kPieceBytes))
    return text(h.bytes, " bytes of ", codec, " in piece ", h.piece, " of ", h.pieces,
                " contradict each other");
  return {};
}

// FNV-1a over the three numbers; never 0, which means "any".
uint32_t layout_of(int64_t elements, DType t, uint32_t purpose) {
  const uint32_t h = Fnv<uint32_t>().add(elements).add(uint64_t(t)).add(uint64_t(purpose)).value();
  return h ? h : 1;
}

Tensor SharedMemory::window(Rank peer, int64_t, int64_t, DType) const {
  throw Error(text("rank ", peer, " shares no memory with this transport"));
}
Endpoint& DeviceMemory::endpoint(Rank peer) const {
  throw Error(text("this transport sends rank ", peer, " nothing from a device's memory"));
}
SharedMemory& Transport::memory() {
  static SharedMemory none;
  return none;
}
DeviceMemory& Transport::devices() {
  static DeviceMemory none;
  return none;
}

Way parse_way(const std::string& word) {
  return one_of<Way>("--transport", word,
                     {{"auto", Way::kAuto},
                      {"local", Way::kLocal},
                      {"shared", Way::kShared},
                      {"tcp", Way::kTcp},
                      {"ucx", Way::kUcx}});
}

Sealing parse_sealing(const std::string& word) {
  return one_of<Sealing>("--seal", word,
                         {{"auto", Sealing::kAuto}, {"on", Sealing::kOn}, {"off", Sealing::kOff}});
}

}  // namespace skein::comm
