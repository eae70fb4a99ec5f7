// Replays the inputs of every harness: its seeds, those that once broke something, and some too long to keep.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

namespace fs = std::filesystem;

class Replay : public ::testing::TestWithParam<Harness> {
 protected:
  static void run(const std::string& bytes) {
    GetParam().run(Input({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
  // Runs all inputs of a folder; returns how many there are.
  static int run_all(const char* folder, int prefixes) {
    int inputs = 0;
    const fs::path place = fs::path(SKEIN_SOURCE_DIR) / "tests/fuzz" / folder / GetParam().name;
    if (!fs::exists(place)) return 0;
    for (const fs::directory_entry& e : fs::directory_iterator(place)) {
      SCOPED_TRACE(e.path().string());
      std::ifstream in(e.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      EXPECT_NO_THROW(run(bytes));
      for (int i = 0; i < prefixes; ++i)
        EXPECT_NO_THROW(run(bytes.substr(0, bytes.size() * size_t(i) / size_t(prefixes))));
      ++inputs;
    }
    return inputs;
  }
};

TEST_P(Replay, SeedsAndTheirBeginningsAreTakenOrRefused) { EXPECT_GT(run_all("corpus", 16), 0); }

TEST_P(Replay, WhatOnceBrokeSomethingIsTakenOrRefused) { run_all("finds", 0); }

// Some recursed once for each level: 200,000 are more than the stack holds.
TEST(LongInputs, NestingOfAnyDepthIsTakenOrRefused) {
  const struct {
    const char *harness, *before, *open, *close, *after;
  } inputs[] = {
      {"safetensors", "\1{\"x\":{\"dtype\":", "[", "]", ",\"shape\":[],\"data_offsets\":[0,0]}}\n"},
      {"safetensors", "\1{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,0],\"shape\":[", "[", "]", "]}}\n"},
      {"safetensors", "\1{\"__metadata__\":{\"classes\":\"", "[", "]", "\"}}\n"},
      {"manifest", "\1{\"format\":", "[", "]", "}"},
      {"manifest", "\1{\"format\":1,\"more\":", "{\"a\":", "}", "}"},
      {"metrics", "\1{\"event\":\"run\",\"step\":0,\"config\":{\"a\":", "[", "]", "}}\n"},
      {"graph", "\2{\"n\":", "[", "]", "}"},
      {"config", "lr = ", "[", "]", "\n"},
      {"config", "a", ".a", "", " = 1\n"},
      {"config", "lr = ", "{a = ", "}", "\n"},
  };
  for (const auto& i : inputs) {
    std::string s = i.before, closed;
    for (int level = 0; level < 200'000; ++level) s += i.open, closed += i.close;
    s += closed + i.after;
    SCOPED_TRACE(std::string(i.harness) + " " + i.before);
    EXPECT_NO_THROW(
        find_harness(i.harness)->run(Input({reinterpret_cast<const uint8_t*>(s.data()), s.size()})));
  }
}

INSTANTIATE_TEST_SUITE_P(Harnesses, Replay, ::testing::ValuesIn(harnesses()),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace skein::fuzz
