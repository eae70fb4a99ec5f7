// Files that are whole or absent, their permissions, and the directory of the caches.
#include "engine/words/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "tests/support/files.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::ScratchDir;
using testing::slurp;
using testing::SmallDisk;
using testing::spill;

constexpr Writing kWays[] = {Writing::kDurable, Writing::kPrivate, Writing::kCache};

std::ptrdiff_t files_in(const ScratchDir& dir) {
  return std::distance(fs::directory_iterator(dir.path()), {});
}
mode_t mode_of(const std::string& path) {
  struct stat s {};
  EXPECT_EQ(::stat(path.c_str(), &s), 0);
  return s.st_mode & 0777;
}

TEST(FileWriter, ShowsTheNewFileOnlyWhenItIsComplete) {
  for (const Writing how : kWays) {
    const ScratchDir dir;
    write_file(dir / "a", "old", how);
    FileWriter file(dir / "a", how);
    file.write("ne", 2), file.write("w", 1);
    EXPECT_EQ(slurp(dir / "a"), "old");
    file.close();
    EXPECT_EQ(read_file(dir / "a"), "new");
    { FileWriter(dir / "a", how).write("half", 4); }
    EXPECT_EQ(slurp(dir / "a"), "new");
    EXPECT_EQ(files_in(dir), 1);
  }
}

TEST(FileWriter, LeavesTheEarlierFileWhereItFails) {
  const ScratchDir dir;
  write_file(dir / "a", "old");
  fs::create_directory(dir / "a.partial");  // keeps the new one from being written
  EXPECT_THROW(write_file(dir / "a", "new"), FileError);
  fs::remove(dir / "a.partial");
  for (const Writing how : kWays) {
    const SmallDisk full(10);
    EXPECT_NE(message_of<FileError>([&] { write_file(dir / "a", "eleven bytes", how); }).find("cannot write"),
              std::string::npos);
  }
  EXPECT_EQ(slurp(dir / "a"), "old");
  EXPECT_EQ(files_in(dir), 1);
  fs::create_directory(dir / "b");  // a directory where the file should be
  for (const Writing how : kWays) EXPECT_THROW(write_file(dir / "b", "new", how), FileError);
  EXPECT_EQ(files_in(dir), 2);
}

TEST(FileWriter, OfTwoTheOneThatBeganLastPutsItsFileInPlace) {
  const ScratchDir dir;
  {
    FileWriter stopped(dir / "a");
    stopped.write("old", 3);
    FileWriter other(dir / "a");
    other.write("newer", 5);
    stopped.write(" and more", 9);
    stopped.close();
    EXPECT_FALSE(fs::exists(dir / "a"));
    other.close();
  }
  EXPECT_EQ(slurp(dir / "a"), "newer");
  {
    FileWriter stopped(dir / "a");
    stopped.write("old", 3);
    write_file(dir / "a", "newest");
    stopped.close();
  }
  EXPECT_EQ(slurp(dir / "a"), "newest");
  EXPECT_EQ(files_in(dir), 1);
}

TEST(FileWriter, NeverRemovesWhatIsNoOrdinaryFile) {
  const ScratchDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe.partial").c_str(), 0600), 0);
  const int reader = ::open((dir / "pipe.partial").c_str(), O_RDONLY | O_NONBLOCK);
  { FileWriter pipe(dir / "pipe"); }
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(dir / "pipe.partial"));
}

TEST(FileWriter, KeepsWhatIsPrivateFromOthers) {
  const ScratchDir dir;
  const mode_t before = ::umask(0);
  for (const Writing how : kWays) {
    write_file(dir / "a", "secret", how);
    EXPECT_EQ(mode_of(dir / "a"), how == Writing::kPrivate ? 0600u : how == Writing::kCache ? 0644u : 0666u);
  }
  ::umask(before);
}

TEST(FileWriter, LetsSeveralWriteTheSameCache) {
  const ScratchDir dir;
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c)
    writers.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) write_file(dir / "cache", std::string(9000, c), Writing::kCache);
    });
  for (std::thread& t : writers) t.join();
  const std::string last = slurp(dir / "cache");
  EXPECT_EQ(last, std::string(9000, last.at(0)));
  EXPECT_EQ(files_in(dir), 1);
}

// Of a name that is too long, or a folder that may not be searched, the library's is_directory() throws.
TEST(LookAfresh, TakesAnyPath) {
  const ScratchDir dir;
  const fs::path odd = fs::path(dir / std::string(300, 'a')) / "b";
  EXPECT_FALSE(skein::is_directory(odd));
  EXPECT_NO_THROW(look_afresh(odd));
}

// Reading a pipe blocks until a process writes to it, a device may never end, and a directory is no file.
TEST(FileReader, OpensNothingButFiles) {
  const ScratchDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", dir / "zeros");
  fs::create_directory(dir / "folder");
  for (const auto& [name, why] : {std::pair{"pipe", "it is a pipe, a socket or a device"},
                                  {"zeros", "it is a pipe, a socket or a device"},
                                  {"folder", "Is a directory"},
                                  {"pipe/in it", "Not a directory"},
                                  {"none", "No such file or directory"}}) {
    const std::string path = dir / name;
    for (const auto& read : {std::function<void()>([&] { read_file(path); }),
                             std::function<void()>([&] { read_pieces(path, [](const char*, size_t) {}); })})
      EXPECT_EQ(message_of<FileError>(read), text(path, ": cannot open this file: ", why)) << name;
  }
}

TEST(FileReader, ReadsNoMoreThanIsWantedAndNoMoreThanMemory) {
  const ScratchDir dir;
  spill(dir / "a", std::string(5000, 'a'));
  EXPECT_EQ(read_file(dir / "a", 5000), std::string(5000, 'a'));
  EXPECT_NE(message_of<FileError>([&] { read_file(dir / "a", 4999); }).find("larger than 4999 bytes"),
            std::string::npos);
  fs::resize_file(dir / "a", size_t(1) << 43);  // takes no space
  EXPECT_NE(message_of<FileError>([&] { read_file(dir / "a"); }).find("cannot read: larger than"),
            std::string::npos);
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // its size is said to be 0
}

TEST(FileReader, KnowsWhatOthersMayHaveWritten) {
  const ScratchDir dir;
  spill(dir / "a", "a");
  for (const auto& [mode, is_ours] : {std::pair{0644, true}, {0600, true}, {0664, false}, {0646, false}}) {
    ::chmod((dir / "a").c_str(), mode_t(mode));
    EXPECT_EQ(FileReader(dir / "a").is_ours(), is_ours) << std::oct << mode;
  }
  ::chmod((dir / "a").c_str(), 0600);
  if (::chown((dir / "a").c_str(), 12345, gid_t(-1)) == 0) {  // root alone can
    EXPECT_FALSE(FileReader(dir / "a").is_ours());
  }
}

TEST(CacheDirectory, IsWhereTheEnvironmentSays) {
  const char* home = std::getenv("HOME");
  const std::string before = home ? home : "";
  setenv("HOME", "/home/somebody", 1);
  setenv("XDG_CACHE_HOME", "/var/tmp/caches", 1);
  EXPECT_EQ(cache_directory(), "/var/tmp/caches/skein");
  setenv("XDG_CACHE_HOME", "relative", 1);  // the standard says to ignore it
  EXPECT_EQ(cache_directory(), "/home/somebody/.cache/skein");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_directory(), "/home/somebody/.cache/skein");
  setenv("HOME", "somewhere", 1);  // relative to where?
  EXPECT_EQ(cache_directory(), "");
  unsetenv("HOME");
  EXPECT_EQ(cache_directory(), "");
  if (home) setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace skein
