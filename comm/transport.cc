// What all transports share: pieces, layout hashes, the word for a way.
#include "comm/transport.h"

#include <algorithm>

namespace skein::comm {

double steady_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

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

// FNV-1a over the three numbers; never 0, which means "any".
uint32_t layout_of(int64_t elements, DType t, uint32_t purpose) {
  uint32_t h = 2166136261u;
  const auto mix = [&](uint64_t v) {
    for (int i = 0; i < 8; ++i) h = (h ^ uint8_t(v >> (8 * i))) * 16777619u;
  };
  mix(uint64_t(elements));
  mix(uint64_t(t));
  mix(purpose);
  return h ? h : 1;
}

Tensor Transport::window(Rank peer, int64_t, int64_t, DType) const {
  throw Error(text("rank ", peer, " shares no memory with this transport"));
}

Way parse_way(const std::string& word) {
  if (word == "auto") return Way::kAuto;
  if (word == "shared") return Way::kShared;
  if (word == "ucx") return Way::kUcx;
  throw BadOption(text("unknown transport '", word, "'; there are auto, local, shared, ucx"));
}

}  // namespace skein::comm
