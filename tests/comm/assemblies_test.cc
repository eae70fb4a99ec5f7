// Assemblies: pieces of several messages, in any order.
#include "comm/assemblies.h"

#include <gtest/gtest.h>

#include "tests/support/messages.h"

namespace skein::comm {
namespace {

Header header_of(int64_t bytes, uint32_t pieces) {
  Header h = message(1, 7, 0, 0);
  h.bytes = bytes, h.pieces = pieces;
  return h;
}

TEST(Assemblies, TwoMessagesOfOneKeyDoNotMixTheirPieces) {
  Assemblies all;
  Header h = header_of(2 * kPieceBytes, 2);
  std::vector<std::pair<Header, Tensor>> places;
  for (int copy = 0; copy < 2; ++copy)
    for (h.piece = 0; h.piece < 2; ++h.piece) {
      places.emplace_back(h, all.place(h, allocator(kCpu)));
      std::fill_n(places.back().second.data<float>(), places.back().second.size(), float(copy));
    }
  const auto placed = [&](size_t i) { return all.placed(places[i].first, places[i].second); };
  EXPECT_FALSE(placed(2));
  EXPECT_FALSE(placed(0));
  const auto m = placed(1);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->payload.data<float>()[0], 0);
  EXPECT_EQ(m->payload.data<float>()[m->payload.size() - 1], 0);
  EXPECT_EQ(m->pieces, 1u) << "it is whole";
  EXPECT_TRUE(all.has(key_of(h))) << "the other one";
  ASSERT_TRUE(placed(3));
  EXPECT_FALSE(all.has(key_of(h)));
}

// Of messages of one key and size, one comes whole, one in pieces and one in another type.
TEST(Assemblies, KeepMessagesApartThatAreCutDifferently) {
  Assemblies all;
  const Header whole = header_of(3 * kPieceBytes, 1);
  Header cut = header_of(3 * kPieceBytes, 3), narrow = whole;
  cut.piece = 2;
  narrow.codec = narrow.dtype = uint8_t(kU8);
  const Tensor first = all.place(whole, allocator(kCpu));
  const Tensor piece = all.place(cut, allocator(kCpu)), other = all.place(narrow, allocator(kCpu));
  EXPECT_EQ(first.bytes(), whole.bytes);
  EXPECT_EQ(piece.bytes(), kPieceBytes);
  EXPECT_EQ(other.size(), whole.bytes);
  EXPECT_NE(piece.storage(), first.storage());
  EXPECT_NE(other.storage(), first.storage());
}

TEST(Assemblies, APieceThatWasNeverPlacedIsAMistakeOfTheTransport) {
  Assemblies all;
  const Header h = header_of(8, 1);
  EXPECT_THROW((void)all.placed(h, Tensor({2})), Error);
  (void)all.place(h, allocator(kCpu));
  EXPECT_THROW((void)all.placed(h, Tensor({2})), Error) << "it has a place elsewhere";
}

}  // namespace
}  // namespace skein::comm
