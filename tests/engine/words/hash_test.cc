// FNV-1a against its authors' test vectors, and the tags that older processes and files use.
#include "engine/words/hash.h"

#include <gtest/gtest.h>

#include "comm/transport.h"

namespace skein {
namespace {

TEST(Fnv, MatchesThePublishedVectors) {
  EXPECT_EQ(Fnv<uint32_t>().value(), 0x811c9dc5u);
  EXPECT_EQ(Fnv<uint32_t>().add("foobar").value(), 0xbf9cf968u);
  EXPECT_EQ(Fnv<uint64_t>().add("foobar").value(), 0x85944171f73967e8u);
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("\xff"), "af64724c8602eb6e");
}

TEST(Fnv, TakesTheLowestByteOfANumberFirst) {
  EXPECT_EQ(Fnv<uint32_t>().add(uint32_t(0x64636261)).value(), Fnv<uint32_t>().add("abcd").value());
  EXPECT_EQ(Fnv<uint64_t>().add(int64_t(-1)).value(),
            Fnv<uint64_t>().add("\xff\xff\xff\xff\xff\xff\xff\xff").value());
}

TEST(Fnv, GivesLayoutsTheTagsTheyHaveOnTheWire) {
  EXPECT_EQ(comm::layout_of(1000, kBF16, 7), 1725936314u);
  EXPECT_EQ(comm::layout_of(12, kF32), 2512763433u);
}

}  // namespace
}  // namespace skein
