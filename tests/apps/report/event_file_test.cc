// Event files: checksums and frames.
#include "apps/report/event_file.h"

#include <gtest/gtest.h>

namespace skein::apps {
namespace {

// RFC 3720, B.4
TEST(Crc32c, OfKnownBytesIsKnown) {
  std::string counting;
  for (int i = 0; i < 32; ++i) counting += char(i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(counting), 0x46dd794eu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

// The first record of every file of TensorFlow has 24 bytes, so all begin with these.
TEST(TensorboardFrames, BeginAsThoseOfTensorFlow) {
  const std::string frame = framed(std::string(24, 'x'));
  EXPECT_EQ(frame.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(frame.size(), 24u + 16u);
}

}  // namespace
}  // namespace skein::apps
