// Tar archives: what tar writes is read, damage is noticed.
#include "data/sources/tar.h"

#include <cstdlib>

#include "tests/support/shards.h"

namespace skein::data {
namespace {

namespace fs = std::filesystem;

Bytes cut(Bytes b, size_t n) {
  b.resize(n);
  return b;
}

// Names of more than 100 bytes, as tar(1) writes them in three formats.
TEST(Tar, ReadsWhatTarWrites) {
  const TemporaryDirectory d;
  const std::string deep = "in/" + std::string(70, 'd') + "/" + std::string(70, 'f'),
                    longest = "in/" + std::string(200, 'n');
  d.write(deep, noise(700)), d.write(longest, noise(3)), d.write("in/empty", {}), d.make("in/directory");
  fs::create_symlink("empty", d / "in/link");
  for (const std::string format : {"ustar", "pax", "gnu"}) {
    // ustar has no room for such a name.
    const std::string only = format == "ustar" ? " --exclude='n*'" : "";
    const std::string command =
        "tar -C '" + d.path() + "' --format=" + format + only + " -cf '" + (d / "t.tar") + "' in";
    ASSERT_EQ(std::system(command.c_str()), 0);
    Tar tar(d / "t.tar");
    std::map<std::string, std::string> found;
    for (TarMember m; tar.next(m);) found[m.name] = tar.read(m);
    const auto content = [](const Bytes& b) { return std::string(b.begin(), b.end()); };
    std::map<std::string, std::string> expected{{deep, content(noise(700))}, {"in/empty", ""}};
    if (only.empty()) expected[longest] = content(noise(3));
    EXPECT_EQ(found, expected) << format;
  }
}

TEST(Tar, AnArchiveThatEndsEarlyIsRefusedWhereverItEnds) {
  const Bytes whole = shard(0, 4).finished();
  EXPECT_EQ(error_of(whole), "");
  EXPECT_EQ(error_of(cut(whole, whole.size() - 512)), "");  // one empty block is an end
  for (size_t n = 1; n < whole.size() - 1024; n += 101) {
    const std::string said = error_of(cut(whole, n));
    ASSERT_TRUE(said.find("truncated") != std::string::npos) << n << said;
  }
  expect_says(error_of(cut(whole, 540)),
              {"x.tar: truncated: a/0.png reaches to byte", "540", "fetch it again"});
}

TEST(Tar, DamageNeverCrashes) {
  const Bytes whole = shard(0, 6).finished();
  for (uint64_t trial = 0; trial < 300; ++trial) {
    Bytes b = whole;
    const Draw draw{11, Purpose::kTest, trial};
    for (uint64_t i = 0; i < 1 + trial % 5; ++i)
      b[draw.bits(2 * i) % b.size()] = uint8_t(draw.bits(2 * i + 1));
    error_of(b);
  }
}

}  // namespace
}  // namespace skein::data
