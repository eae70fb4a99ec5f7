// The nearest name to a mistyped one.
#include "engine/words/nearest.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(Nearest, CountsSwapsAsOneAndPrefersTheFirst) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(nearest("spg", {"d-psgd", "sgp", "sgd"}), "sgp");
  EXPECT_EQ(nearest("sgx", {"sgp", "sgd"}), "sgp");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Nearest, OffersNoNameThatIsFarOff) {
  EXPECT_EQ(nearest("x", {"a", "b"}), "");
  EXPECT_EQ(nearest("ddp", {"sgp", "d-psgd", "easgd"}), "");
  EXPECT_EQ(nearest("dry-run", {"recipe", "data", "workers"}), "");
  EXPECT_EQ(nearest("photos", {"mnist", "cifar10"}), "");
  EXPECT_EQ(nearest("fashion", {"mnist", "fashion-mnist"}), "fashion-mnist");  // its beginning
  EXPECT_EQ(did_you_mean("dry-run", {"recipe"}), "");
  EXPECT_EQ(did_you_mean("resnet5", {"resnet20", "resnet50"}), "; did you mean resnet50?");
}

}  // namespace
}  // namespace skein
