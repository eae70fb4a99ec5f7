// Assemblies: a piece belongs to the first message of its key and form that still lacks it.
#include "comm/assemblies.h"

#include <algorithm>
#include <utility>

namespace skein::comm {

Tensor Assemblies::place(const Header& h, Allocator& from) {
  auto& open = open_[key_of(h)];
  auto a = std::find_if(open.begin(), open.end(), [&](const Assembly& a) {
    const Message& m = a.message;
    return m.bytes == h.bytes && m.codec == h.codec && a.placed.size() == h.pieces && !a.placed[h.piece];
  });
  if (a == open.end()) {
    const DType t = DType(h.codec);
    Message m{h, Tensor({h.bytes / size_of(t)}, t, from)};
    m.piece = 0;
    m.pieces = 1;
    a = open.insert(open.end(), Assembly{std::move(m), std::vector<bool>(h.pieces), h.pieces});
  }
  a->placed[h.piece] = true;
  const Piece p = piece_of(h);
  const int64_t unit = size_of(DType(h.codec));
  return a->message.payload.view({(p.end - p.begin) / unit}, p.begin / unit);
}

std::optional<Message> Assemblies::placed(const Header& h, const Tensor& place) {
  const auto all = open_.find(key_of(h));
  CHECK(all != open_.end(), "a piece landed that had no landing", h.from, h.tag, h.step);
  auto& open = all->second;
  const auto a = std::find_if(open.begin(), open.end(), [&](const Assembly& a) {
    return a.message.payload.storage() == place.storage();
  });
  CHECK(a != open.end(), "a piece landed in another message", h.from, h.tag, h.step);
  if (--a->missing > 0) return {};
  Message m = std::move(a->message);
  open.erase(a);
  if (open.empty()) open_.erase(all);
  return m;
}

}  // namespace skein::comm
