// After a change of the membership config.toml still says what was asked for.
#include "apps/train/opening.h"

#include <filesystem>

#include "apps/base/writable.h"
#include "apps/checkpoint/run_directory.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace fs = std::filesystem;

void open_directory(Run& run, Record& record, Scoring& scoring, Saving& saving, Traces& traces) {
  if (!run.first() || record.is_open()) return;
  const std::string& directory = run.directory;
  const bool before = fs::exists(directory), continues = saving.continues();
  if (!continues) refuse_a_run(directory);
  try {
    make_directory(directory);
    if (!run.config.export_onnx.empty()) check_writable(run.config.export_onnx);
    if (record.workers().changes().empty()) write_file(directory + "/config.toml", to_toml(run.config));
    record.open(continues);
    scoring.open(saving.resumed_from());
    traces.open();
  } catch (...) {
    std::error_code none;
    if (!before) fs::remove_all(directory, none);
    if (!continues) fs::remove(fs::path(directory) / "metrics.jsonl", none);
    throw;
  }
}

}  // namespace skein::apps
