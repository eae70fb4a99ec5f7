// Arenas: their addresses suffice, core dumps leave them out, and forked processes have copies.
#include "comm/transports/arena.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>

namespace skein::comm {
namespace {

constexpr int64_t kTera = int64_t(1) << 40, kAllAddresses = int64_t(1) << 47;

TEST(Arena, ThoseOfAHostFitIntoEachOfItsProcesses) {
  for (const int64_t memory : {kTera / 64, kTera - 20000000000, kTera, 2 * kTera, 6 * kTera})
    for (const int64_t processes : {1, 2, 7, 64, 100, 256, 1024, 65536}) {
      const int64_t bytes = arena_bytes(processes, memory);
      EXPECT_LE(bytes, kAllAddresses * 3 / 4 / processes) << memory << ' ' << processes;
      EXPECT_GE(bytes, std::min(2 * memory, 4 * memory / processes)) << memory << ' ' << processes;
    }
  EXPECT_GE(arena_bytes(64, 2 * kTera), kTera);
}

TEST(Arena, IsLeftOutOfCoreDumps) {
  auto* arena = new Arena(int64_t(1) << 34, 0, 0);
  float* x = static_cast<float*>(arena->take(4096));
  std::memset(x, 1, 4096);
  std::ifstream maps("/proc/self/smaps");
  bool found = false, here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
      here = uintptr_t(x) >= from && uintptr_t(x) < to;
    if (!here || !line.starts_with("VmFlags:")) continue;
    found = true;
    EXPECT_NE((line + ' ').find(" dd "), std::string::npos) << line;
  }
  EXPECT_TRUE(found);
  arena->give(x, 4096);
  arena->retire();
}

TEST(Arena, AForkedProcessWritesIntoACopy) {
  auto* arena = new Arena(int64_t(1) << 30, 0, 0);
  const Mapping elsewhere(arena->file(), int64_t(1) << 30);  // as a peer has it
  int* x = static_cast<int*>(arena->take(4096));
  int* seen = reinterpret_cast<int*>(elsewhere.base + arena->offset_of(x));
  *x = 7;
  const pid_t child = fork();
  if (child == 0) {
    const bool knew = *x == 7 && *seen == 7;
    *x = 8, *seen = 9;
    _exit(knew ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*x, 7);
  *x = 10;
  EXPECT_EQ(*seen, 10);  // this process and its peers still share it
  arena->give(x, 4096);
  arena->retire();
}

}  // namespace
}  // namespace skein::comm
