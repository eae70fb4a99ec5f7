// The header of a message as it lies in memory and on the wire.
#include "comm/transport.h"

#include <gtest/gtest.h>

namespace skein::comm {
namespace {

TEST(Header, LiesInMemoryAsTheWireWantsIt) {
  EXPECT_EQ(offsetof(Header, communicator), 8u);
  EXPECT_EQ(offsetof(Header, epoch), 12u);
  EXPECT_EQ(offsetof(Header, from), 16u);
  EXPECT_EQ(offsetof(Header, tag), 20u);
  EXPECT_EQ(offsetof(Header, step), 24u);
  EXPECT_EQ(offsetof(Header, piece), 32u);
  EXPECT_EQ(offsetof(Header, bytes), 40u);
  EXPECT_EQ(offsetof(Header, codec), 48u);
  EXPECT_EQ(offsetof(Header, layout), 52u);
  EXPECT_EQ(offsetof(Header, weight), 56u);
  const Header h;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&h), 4), "SKEN");
}

TEST(Header, SaysInWordsHowItContradictsItself) {
  const auto changed = [](auto change) {
    Header h;
    h.bytes = 4;
    change(h);
    return contradiction(h);
  };
  EXPECT_EQ(changed([](Header&) {}), "");
  EXPECT_EQ(changed([](Header& h) { h.codec = uint8_t(kBF16); }), "") << "floats are converted";
  EXPECT_EQ(changed([](Header& h) { h.codec = 77; }), "unknown type 77/0");
  EXPECT_EQ(changed([](Header& h) { h.codec = uint8_t(kI32); }),
            text(kI32, " in place of ", kF32, "; do all run the same version?"));
  EXPECT_EQ(changed([](Header& h) { h.bytes = 3; }),
            text("3 bytes of ", kF32, " in piece 0 of 1 contradict each other"));
  EXPECT_NE(changed([](Header& h) { h.pieces = 2; }), "");
  EXPECT_NE(changed([](Header& h) { h.piece = 1; }), "");
  EXPECT_EQ(changed([](Header& h) { h.pieces = 2, h.bytes = kPieceBytes + 4; }), "");
}

}  // namespace
}  // namespace skein::comm
