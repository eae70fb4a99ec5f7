// The table of gpu_bench: printed row by row, and written as JSON that is complete after every row.
#include <cstdio>
#include <fstream>

#include "bench/cuda/gpu_bench.h"

namespace skein::bench {

void Table::row(const std::string& what, double value, const char* unit, double seconds,
                const std::string& note) {
  std::printf("%-78s %10.1f %-8s %9.3f ms  %s\n", what.c_str(), value, unit, seconds * 1e3, note.c_str());
  nlohmann::json kept = {{"what", what}, {"value", value}, {"unit", unit}, {"ms", seconds * 1e3}};
  if (!note.empty()) kept["note"] = note;
  keep(std::move(kept));
}

void Table::failed(const std::string& what, const std::string& why) {
  std::printf("%-78s failed: %s\n", what.c_str(), why.c_str());
  keep({{"what", what}, {"failed", why}});
  ++failures_;
}

// The program may be killed at any time, also in here, so the file is replaced atomically.
void Table::keep(nlohmann::json row) {
  std::fflush(stdout);
  rows_.push_back(std::move(row));
  if (file_.empty()) return;
  const std::string part = file_ + ".part";
  std::ofstream(part) << rows_.dump(1) << '\n';
  if (std::rename(part.c_str(), file_.c_str()) != 0) throw Error("cannot write " + file_);
}

}  // namespace skein::bench
