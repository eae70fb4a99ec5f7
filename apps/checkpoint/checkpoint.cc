// Saving: writes a hidden directory, flushes everything, renames it, then removes the oldest checkpoints.
#include "apps/checkpoint/checkpoint.h"

#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "apps/checkpoint/manifest.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace fs = std::filesystem;
namespace {

// Gives `fresh` the name `target`, atomically if the file system can exchange names; then
// removes the old `target`.
void swap_in(const std::string& fresh, const std::string& target) {
  if (!fs::exists(target)) return fs::rename(fresh, target);
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
    const std::string old = fresh + ".old";
    fs::rename(target, old);
    fs::rename(fresh, target);
    fs::rename(old, fresh);
  }
  fs::remove_all(fresh);
}

// Renames it to a hidden name first, so that a half-removed checkpoint never has a checkpoint's name.
void remove_checkpoint(const std::string& path) {
  const fs::path p(path);
  const fs::path hidden = p.parent_path() / ("." + p.filename().string() + kPartial);
  fs::remove_all(hidden);
  fs::rename(p, hidden);
  fs::remove_all(hidden);
}

// The hidden names of unfinished checkpoints.
std::vector<std::string> unfinished(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator at(directory, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(".step-") && name.find(kPartial) != std::string::npos) names.push_back(name);
  }
  return names;
}

std::string sum_file(const std::string& aside, int rank) { return text(aside, '/', rank_file(rank), ".sum"); }

}  // namespace

Checkpoints::Checkpoints(const std::string& output, int keep) : dir_(output + "/checkpoints"), keep_(keep) {
  CHECK(keep >= 1, keep);
  for (const std::string& name : unfinished(dir_)) leftovers_.insert(name);
}

std::string Checkpoints::aside(int64_t step) const {
  return text(dir_, "/.", checkpoint_name(step), attempt_ > 0 ? text('.', attempt_) : "", kPartial);
}

bool Checkpoints::is_taken_away(int64_t step) const { return !fs::exists(aside(step)); }

// Left behind by a crash, or by an attempt before this one.
bool Checkpoints::is_leftover(const std::string& name) const {
  const size_t dot = name.find('.', 1);
  return leftovers_.contains(name) || std::atoi(name.c_str() + dot + 1) <= attempt_;
}

// Checkpoints of later steps were abandoned when training resumed from an earlier one. Those that appear
// after this are none of them: if this worker is stopped, and given up, the others write them.
void Checkpoints::begin(int64_t step) {
  make_directory(dir_);
  std::error_code ignored;
  for (const std::string& name : unfinished(dir_))
    if (is_leftover(name)) fs::remove_all(dir_ + '/' + name, ignored);
  abandoned_.clear();
  for (const std::string& path : list_checkpoints(dir_))
    if (checkpoint_step(path) > step) abandoned_.push_back(path);
  make_directory(aside(step));
}

void Checkpoints::write(int64_t step, int rank, const Walk& walk) {
  const std::string aside = this->aside(step);
  const std::string sum = save_state(text(aside, '/', rank_file(rank)), walk);
  write_file(sum_file(aside, rank), sum);
}

std::string Checkpoints::commit(int64_t step, const Identity& identity, const DataIndex& images,
                                const std::string& leftover, const std::vector<int64_t>& shares) {
  const std::string aside = this->aside(step), target = dir_ + '/' + checkpoint_name(step);
  Manifest m{.step = step,
             .identity = identity,
             .files = {},
             .sums = {},
             .images = images,
             .leftover = leftover,
             .shares = shares};
  for (int rank = 0; rank < identity.world; ++rank) {
    if (!fs::exists(sum_file(aside, rank)))
      throw BadFile(text(aside, '/', rank_file(rank), ": worker ", rank,
                         " wrote no such file that worker 0 can see; ",
                         "--output must lie on a file system that all hosts share"));
    m.files.push_back(rank_file(rank));
    m.sums.push_back(read_file(sum_file(aside, rank)));
  }
  write_manifest(aside, m);
  for (int rank = 0; rank < identity.world; ++rank) fs::remove(sum_file(aside, rank));
  sync_directory(aside);
  try {
    swap_in(aside, target);
    sync_directory(dir_);
    retire(step);
  } catch (const fs::filesystem_error& e) {
    throw BadFile(text(target, ": cannot put the finished checkpoint here: ", e.code().message()));
  }
  return target;
}

void Checkpoints::retire(int64_t newest) {
  for (const std::string& path : abandoned_)
    if (fs::exists(path)) remove_checkpoint(path);
  std::vector<std::string> older;
  for (const std::string& path : list_checkpoints(dir_))
    if (checkpoint_step(path) < newest) older.push_back(path);
  for (size_t i = 0; i + size_t(keep_) < older.size() + 1; ++i) remove_checkpoint(older[i]);
}

void Checkpoints::abandon(int64_t step) noexcept {
  std::error_code ignored;
  fs::remove_all(aside(step), ignored);
}

}  // namespace skein::apps
