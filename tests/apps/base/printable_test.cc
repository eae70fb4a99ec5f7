// Names from outside, made printable.
#include "apps/base/printable.h"

#include <gtest/gtest.h>

namespace skein::apps {
namespace {

TEST(Printable, ControlCharactersAreEscapedAndOtherTextIsKept) {
  EXPECT_EQ(printable("a\x1b[2J\r\x7f\x01"), "a\\x1b[2J\\x0d\\x7f\\x01");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\u009b2J");
  EXPECT_EQ(printable("Gänse\tund 白鳥\n\xC2"), "Gänse\tund 白鳥\n\xC2");
  EXPECT_EQ(printable("\u202Egnp.exe \u2067a\u200F\u061C \u2019"),
            "\\u202egnp.exe \\u2067a\\u200f\\u061c \u2019");
  EXPECT_EQ(printable_name("two\nlines\tof 白鳥"), "two\\x0alines\\x09of 白鳥");
}

TEST(Printable, AnExcerptIsShortAndAscii) {
  EXPECT_EQ(printable_excerpt("12a\x1b\xFF\t\x7f"), "12a\\x1b\\xff\\x09\\x7f");
  EXPECT_EQ(printable_excerpt(std::string(40, 'x')), std::string(40, 'x'));
  EXPECT_EQ(printable_excerpt(std::string(41, '\xC3')).size(), 40 * 4 + 3);
}

TEST(ShellWord, IsReadByAShellAsItWas) {
  EXPECT_EQ(shell_word("runs/one-2_a.b=c:d,e@f%g+h"), "runs/one-2_a.b=c:d,e@f%g+h");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my run"), "'my run'");
  EXPECT_EQ(shell_word("~/o'brien; $x"), "'~/o'\\''brien; $x'");
  EXPECT_EQ(shell_quoted("run"), "'run'");
}

TEST(Counted, IsPluralUnlessThereIsOne) {
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(2, "step"), "2 steps");
}

}  // namespace
}  // namespace skein::apps
