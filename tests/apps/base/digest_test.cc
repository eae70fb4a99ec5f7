// The digest of bytes.
#include "apps/base/digest.h"

#include <gtest/gtest.h>

namespace skein::apps {
namespace {

TEST(Digest, IsBlake2bOf256Bits) {  // of the empty string; RFC 7693's function with a 32-byte output
  EXPECT_EQ(Digest().hex(), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

}  // namespace
}  // namespace skein::apps
