// .npy files of others: what their headers may say.
#include "apps/model/vectors.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace skein::apps {
namespace {

using testing::has;
using testing::message_of;
using testing::ScratchDir;
using testing::spill;

std::string npy(const std::string& header, size_t bytes) {
  const uint16_t n = uint16_t(header.size());
  return std::string("\x93NUMPY\1\0", 8) + std::string(reinterpret_cast<const char*>(&n), 2) + header +
         std::string(bytes, '\0');
}
std::string of_shape(const std::string& shape, size_t bytes) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n", bytes);
}

TEST(Npy, ShapesOfWholeNumbersAreRead) {
  const ScratchDir dir;
  for (const auto& [shape, numbers] :
       {std::pair{"(3,)", 3}, {"()", 1}, {"(2, 3)", 6}, {"( 2 ,0, 9223372036854775807)", 0}}) {
    spill(dir / "a.npy", of_shape(shape, size_t(numbers) * 4));
    EXPECT_EQ(read_vectors(dir / "a.npy").flat.size(), numbers) << shape;
  }
}

TEST(Npy, ImpossibleHeadersAreRefused) {
  const ScratchDir dir;
  for (const auto& [bytes, says] : std::vector<std::pair<std::string, std::string>>{
           {of_shape("(4611686018427387904, 3)", 12), "impossible shape: (4611686018427387904, 3)"},
           {of_shape("(3, abc)", 0), "impossible shape"},
           {of_shape("(3, 0x2)", 12), "impossible shape"},
           {of_shape("(99999999999999999999,)", 12), "impossible shape"},
           {of_shape("(-3,)", 12), "impossible shape"},
           {of_shape("3", 12), "no shape"},
           {npy("{'descr':", 0), "no descr"},
           {npy("{'descr': '", 0), "no shape"},
           {npy("{'descr': '<f4', 'shape': (3,)}", 12), "no fortran_order"}}) {
    spill(dir / "a.npy", bytes);
    const std::string m = message_of<BadFile>([&] { read_vectors(dir / "a.npy"); });
    EXPECT_TRUE(has(m, says)) << m;
    EXPECT_TRUE(m.starts_with(dir / "a.npy")) << m;
  }
}

}  // namespace
}  // namespace skein::apps
