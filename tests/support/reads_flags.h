// A directory for TOML files, and the command line of train_imagenet as a function.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "apps/command_line/command_line.h"
#include "tests/support/says.h"

namespace skein::apps {

namespace fs = std::filesystem;

struct ReadsFlags : ::testing::Test {
  fs::path dir = fs::path(::testing::TempDir()) / text("flags_", getpid());
  ReadsFlags() { fs::create_directories(dir); }
  ~ReadsFlags() override { fs::remove_all(dir); }

  std::string file(const std::string& content, const std::string& name = "recipe.toml") const {
    std::ofstream(dir / name) << content;
    return dir / name;
  }
  static Command parse(std::vector<std::string> words, const Flags& table = flags()) {
    std::vector<const char*> argv = {"train_imagenet"};
    for (const std::string& w : words) argv.push_back(w.c_str());
    return parse_command_line(int(argv.size()), argv.data(), table);
  }
  // The message of the refusal; empty if there is none.
  static std::string refusal(const std::vector<std::string>& words, const Flags& table = flags()) {
    try {
      parse(words, table);
    } catch (const BadOption& e) { return e.what(); } catch (const BadFile& e) {
      return e.what();
    }
    return "";
  }
};

}  // namespace skein::apps
