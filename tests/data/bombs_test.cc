// Small files that ask for much memory or time are refused by stated limits, before they have it.
#include "data/files.h"
#include "data/pictures/encoded.h"
#include "data/pictures/jpeg.h"
#include "data/pictures/png.h"
#include "data/reading.h"
#include "data/sources/idx.h"
#include "tests/support/data_files.h"

namespace skein::data {
namespace {

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }
Bytes big_endian(uint32_t n) { return {uint8_t(n >> 24), uint8_t(n >> 16), uint8_t(n >> 8), uint8_t(n)}; }

// The beginning of a PNG, up to the pixels.
Bytes png_head(uint32_t height, uint32_t width) {
  Bytes header{'I', 'H', 'D', 'R'};
  append(header, big_endian(width)), append(header, big_endian(height)), append(header, {8, 2, 0, 0, 0});
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13};
  append(file, header);
  append(file, big_endian(uint32_t(crc32(0, header.data(), uInt(header.size())))));
  append(file, {0, 0, 1, 0, 'I', 'D', 'A', 'T'});
  return file;
}

// A gray progressive JPEG without a coefficient: every scan is of zero bits.
Bytes progressive_jpeg(uint16_t height, uint16_t width, int scans) {
  const auto two = [](size_t n) { return Bytes{uint8_t(n >> 8), uint8_t(n)}; };
  Bytes file{0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  append(file, Bytes(64, 1));
  append(file, {0xFF, 0xC2, 0, 11, 8}), append(file, two(height)), append(file, two(width));
  append(file, {1, 1, 0x11, 0});
  for (const uint8_t table : {0x00, 0x10}) {  // DC and AC: one code of one bit, for 0
    append(file, {0xFF, 0xC4, 0, 20, table, 1});
    append(file, Bytes(16, 0));
  }
  const size_t blocks = size_t((height + 7) / 8) * size_t((width + 7) / 8);
  for (int s = 0; s < scans; ++s) {
    append(file, {0xFF, 0xDA, 0, 8, 1, 1, 0, uint8_t(s > 0), uint8_t(s > 0 ? 63 : 0), 0});
    append(file, Bytes(blocks / 8 + 2, 0));
  }
  append(file, {0xFF, 0xD9});
  return file;
}

TEST(Bomb, APictureThatClaimsMoreMemoryThanAllowedIsRefusedByItsHeader) {
  Picture p;
  const Bytes large = png_head(16383, 16384), small = png_head(64, 64);
  EXPECT_FALSE(decode_png(large.data(), large.size(), View{}, {8, 8, 3}, p));
  EXPECT_EQ(p.odd, kUndecodable);  // its pixels were not asked for
  EXPECT_EQ(p.bytes.capacity(), 0u);
  EXPECT_FALSE(decode_png(small.data(), small.size(), View{}, {8, 8, 3}, p));
  EXPECT_EQ(p.odd, kTruncated);
  // Progressive decoding keeps two bytes a pixel; these are less than 2^28 pixels.
  const Bytes jpeg = progressive_jpeg(16383, 16384, 1);
  EXPECT_LT(jpeg.size(), size_t(1) << 20);
  EXPECT_FALSE(decode_jpeg(jpeg.data(), jpeg.size(), View{}, {8, 8, 3}, p));
  EXPECT_EQ(p.odd, kUndecodable);
}

TEST(Bomb, AJpegOfManyScansIsRefused) {
  Picture p;
  for (const int scans : {1, 12, 64, 66, 1000}) {
    const Bytes jpeg = progressive_jpeg(64, 64, scans);
    EXPECT_EQ(decode_jpeg(jpeg.data(), jpeg.size(), View{}, {8, 8, 3}, p), scans <= 64) << scans;
  }
}

TEST(Bomb, AFileLargerThanAPictureCanBeIsNotRead) {
  const TemporaryDirectory d;
  d.write("large.jpg", {0xFF, 0xD8, 0xFF});
  Bytes bytes;
  EXPECT_TRUE(read_raw(d / "large.jpg", kMostPictureBytes, bytes));
  std::filesystem::resize_file(d / "large.jpg", size_t(1) << 40);  // takes no space
  EXPECT_FALSE(read_raw(d / "large.jpg", kMostPictureBytes, bytes));
}

// A gzipped file of 300 MiB of zeros behind `head`: members of a mebibyte, which read as one stream.
Bytes packed_zeros(const Bytes& head) {
  Bytes packed = gzipped(head);
  const Bytes member = gzipped(Bytes(1 << 20, 0));
  for (int i = 0; i < 300; ++i) append(packed, member);
  return packed;
}

TEST(Bomb, AGzippedFileIsUnpackedOnlyAsFarAsItMayGo) {
  const Bytes packed = packed_zeros({1});
  EXPECT_LT(packed.size(), size_t(1) << 20);
  EXPECT_EQ(unpacked(packed, "f", 2000000).size(), 2000000u);
  expect_says(message_of<BadFile>([&] { unpacked(packed, "f"); }),
              {"f: unpacks to more than 268435456 bytes", "gunzip"});
  EXPECT_EQ(unpacked(gzipped(noise(1 << 20)), "f"), noise(1 << 20));
  Bytes empty;  // a million members without a byte
  for (const Bytes member = gzipped({}); empty.size() < member.size() * 1000000;) append(empty, member);
  append(empty, gzipped({7}));
  EXPECT_EQ(unpacked(empty, "f"), Bytes{7});
}

TEST(Bomb, AnIdxFileIsUnpackedAsFarAsItsHeaderSays) {
  Bytes images{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 3};
  const Bytes labels{0, 0, 8, 1, 0, 0, 0, 1, 7};
  images.resize(16 + 9);
  EXPECT_EQ(parse_idx({"i", gzipped(images)}, {"l", labels}).labels, std::vector<int32_t>{7});
  expect_says(message_of<BadFile>([&] {
                parse_idx({"i", packed_zeros(images)}, {"l", labels});
              }),
              {"i: too long: more than 9 bytes after the header"});
}

}  // namespace
}  // namespace skein::data
