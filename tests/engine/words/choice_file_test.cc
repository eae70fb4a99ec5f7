// Choices kept in a file: later runs find them, and a file that is damaged or not writable does no harm.
#include "engine/words/choice_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace skein {
namespace {

namespace fs = std::filesystem;

class ChoiceFileTest : public ::testing::Test {
 protected:
  ChoiceFileTest() {
    std::string pattern = (fs::temp_directory_path() / "skein-choices-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern, path_ = pattern + "/deep/choices.txt";
  }
  ~ChoiceFileTest() override { fs::remove_all(directory_); }
  std::string bytes() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& s) const { std::ofstream(path_) << s; }
  std::string directory_, path_;
};

TEST_F(ChoiceFileTest, KeepsForThisProcessAndTheNext) {
  ChoiceFile first(path_);
  EXPECT_EQ(first.find("a shape"), std::nullopt);
  first.keep("a shape", "engine 3");
  first.keep("another", "");
  first.keep("a shape", "engine 4");
  EXPECT_EQ(first.find("a shape"), "engine 4");
  const ChoiceFile next(path_);
  EXPECT_EQ(next.find("a shape"), "engine 4");
  EXPECT_EQ(next.find("another"), "");
  size_t files = 0;
  for ([[maybe_unused]] const auto& e : fs::directory_iterator(fs::path(path_).parent_path())) ++files;
  EXPECT_EQ(files, 1u);  // no temporary file is left
}

TEST_F(ChoiceFileTest, TwoProcessesAddToOneFile) {
  ChoiceFile a(path_), b(path_);
  a.keep("of a", "1");
  b.keep("of b", "2");
  a.keep("of a too", "3");
  for (const char* key : {"of a", "of b", "of a too"}) EXPECT_TRUE(ChoiceFile(path_).find(key)) << key;
  EXPECT_EQ(a.find("of b"), "2");  // read when keeping
}

TEST_F(ChoiceFileTest, AChoiceThatAnotherProcessReplacedStaysReplaced) {
  ChoiceFile(path_).keep("shape", "old");
  ChoiceFile a(path_), b(path_);
  b.keep("shape", "new");
  a.keep("of a", "1");
  EXPECT_EQ(ChoiceFile(path_).find("shape"), "new");
}

TEST_F(ChoiceFileTest, ManyAtOnceLeaveAllTheyKept) {
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      ChoiceFile mine(path_);
      for (int i = 0; i < 20; ++i) mine.keep(text(t, '-', i), text(i));
    });
  for (std::thread& t : writers) t.join();
  const ChoiceFile after(path_);
  for (int t = 0; t < 4; ++t)
    for (int i = 0; i < 20; ++i) EXPECT_EQ(after.find(text(t, '-', i)), text(i)) << t;
}

TEST_F(ChoiceFileTest, ADamagedLineIsPassedOverAndADamagedFileHoldsNothing) {
  ChoiceFile(path_).keep("good", "1");
  ChoiceFile(path_).keep("bad", "2");
  std::string all = bytes();
  all[all.find("bad\t2") + 4] = '3';
  write(all);
  EXPECT_EQ(ChoiceFile(path_).find("bad"), std::nullopt);
  EXPECT_EQ(ChoiceFile(path_).find("good"), "1");
  for (const std::string& broken :
       {std::string(), std::string("skein choices 2\n") + all, std::string(5000, '\0'), all.substr(3)}) {
    write(broken);
    EXPECT_EQ(ChoiceFile(path_).find("good"), std::nullopt);
  }
  write(all.substr(0, all.size() - 4));  // cut off
  EXPECT_EQ(ChoiceFile(path_).find("bad"), std::nullopt);
  ChoiceFile mended(path_);
  mended.keep("new", "4");
  EXPECT_EQ(ChoiceFile(path_).find("new"), "4");
}

TEST_F(ChoiceFileTest, WhatCannotBeWrittenIsKeptForThisProcess) {
  std::ofstream(directory_ + "/file") << "x";
  ChoiceFile f(directory_ + "/file/below");  // a directory cannot be made there
  f.keep("a", "1");
  EXPECT_EQ(f.find("a"), "1");
  ChoiceFile nowhere("");
  nowhere.keep("a", "1");
  EXPECT_EQ(nowhere.find("a"), "1");
  fs::create_directories(path_);  // a directory in the file's place
  ChoiceFile blocked(path_);
  blocked.keep("a", "1");
  EXPECT_EQ(blocked.find("a"), "1");
}

TEST_F(ChoiceFileTest, RefusesWhatWouldBreakTheFile) {
  ChoiceFile f(path_);
  EXPECT_THROW(f.keep("a\tb", "1"), Error);
  EXPECT_THROW(f.keep("a", "1\n2"), Error);
}

}  // namespace
}  // namespace skein
