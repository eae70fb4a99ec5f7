// Runs a built program as its users do, as a separate process, and returns its exit status and output.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "apps/base/json.h"
#include "apps/model/safetensors.h"

namespace skein::testing_programs {

struct Ended {
  int status = -1;  // exit code; 128 + signal if a signal ended it
  std::string out, err;
};

inline void expect_has(const std::string& whole, const std::string& part) {
  EXPECT_NE(whole.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << whole;
}

inline void expect_fine(const Ended& e) { ASSERT_EQ(e.status, 0) << e.out << e.err; }

// A fresh directory for a test, in which it runs programs by the shell.
class Workplace {
 public:
  explicit Workplace(const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
    std::string pattern = (in / "skein-program-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }

  // `$TRAIN` in the line is the path of train_imagenet, `$GOSSIP` that of gossip_avg.
  Ended run(const std::string& line) const {
    const std::string shell = "cd '" + path_.string() +
                              "' && export TRAIN='" SKEIN_BINARY_DIR
                              "/train_imagenet' GOSSIP='" SKEIN_BINARY_DIR
                              "/gossip_avg' OMP_NUM_THREADS=1 && { " +
                              line + "\n} > .out 2> .err";
    const int raw = std::system(("bash -c '" + quoted(shell) + "'").c_str());
    const int status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    return {status, read(".out"), read(".err")};
  }

 private:
  static std::string quoted(const std::string& s) {  // for the inside of single quotes
    std::string out;
    for (const char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out;
  }
  std::filesystem::path path_;
};

inline apps::Json summary_of(const Workplace& w, const std::string& run) {
  return apps::Json::parse(w.read(run + "/summary.json"));
}

}  // namespace skein::testing_programs
