// Makes a run's directory, with the locks and the note that show others that it is in use.
#include "apps/checkpoint/run_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/base/host.h"
#include "apps/base/printable.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/launch/host_list.h"
#include "apps/launch/membership_note.h"
#include "engine/words/file.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using comm::Clock;

constexpr const char* kLockFile = ".skein-lock";
constexpr const char* kMetrics = "metrics.jsonl";

// The start time of a process as the kernel reports it; empty if there is no such process.
std::string birth_of(long pid) {
  std::istringstream fields(process_state(pid));
  std::string word;
  for (int i = 0; i < 20; ++i) fields >> word;
  return word;
}

// The process that trains, as recorded in DIR/.skein-lock.
struct Note {
  std::string host, since;  // since: birth_of() the process
  long pid = 0;
  std::string words() const {
    return pid > 0 ? fmt::format("process {} on host {}", pid, host) : "another process";
  }
  bool is_ours() const { return pid == getpid() && host == host_name(); }
  bool lives_here() const { return pid > 0 && host == host_name() && birth_of(pid) == since; }
};

Note read_note(int file) {
  char bytes[512] = "";
  const ssize_t n = pread(file, bytes, sizeof bytes - 1, 0);
  std::istringstream in(std::string(bytes, size_t(std::max<ssize_t>(0, n))));
  Note note;
  std::string word;
  in >> word >> note.host >> word >> note.pid >> word >> note.since;
  return in ? note : Note{};
}

std::string fit_for_a_name(std::string s) {
  for (char& c : s)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '-';
  return s;
}

bool holds_run(const fs::path& directory) {
  return fs::exists(directory / kMetrics) || !list_checkpoints(directory.string()).empty();
}

// All runs but those in whose simulated world no model computes gradients, which say what does.
bool can_go_on(const fs::path& directory) {
  std::ifstream events(directory / kMetrics);
  std::string first;
  std::getline(events, first);
  const auto j = parse_json(first);
  return !j.is_object() || !j.contains("environment") || !j["environment"].contains("gradient");
}

}  // namespace

void refuse_a_run(const std::string& directory) {
  if (!holds_run(directory)) return;
  const std::string word = shell_word(directory),
                    go_on = can_go_on(directory)
                                ? fmt::format("continue that run (train_imagenet --resume {}), ", word)
                                : "";
  throw BadOption(
      fmt::format("--output {}: holds a run already; choose another directory, {}or remove it (rm -r {})",
                  directory, go_on, word));
}

RunDirectory::~RunDirectory() {
  if (!first_ || !file_) return;
  if (ftruncate(file_.get(), 0) != 0) return;
  std::error_code none;
  if (holds_run(path_)) return;
  fs::remove(fs::path(path_) / kLockFile, none);
  if (made_.empty()) return;
  fs::remove_all(made_.front(), none);
  for (const fs::path& parent : made_) ::rmdir(parent.c_str());  // removes only empty ones
}

// The destructor removes the parents that this process made.
void RunDirectory::make_parents() {
  std::error_code none;
  std::vector<fs::path> missing;
  for (fs::path d = fs::path(path_).parent_path(); !d.empty() && !fs::exists(d, none); d = d.parent_path())
    missing.push_back(d);
  if (const fs::path parent = fs::path(path_).parent_path(); !parent.empty()) make_directory(parent.string());
  made_ = std::move(missing);
}

void RunDirectory::make(const std::string& model, const std::string& data) {
  const std::string host = host_name();
  const std::string name =
      fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}-{}-{}", model, data.substr(0, data.find(':')),
                  fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())),
                  fit_for_a_name(host.substr(0, host.find('.'))), getpid());
  path_ = name;
  make_parents();
  for (int n = 2; ::mkdir(path_.c_str(), 0777) != 0; ++n) {
    if (errno != EEXIST)
      throw BadFile(text(path_, ": this directory cannot be made: ", std::strerror(errno)));
    path_ = fmt::format("{}-{}", name, n);
  }
  made_.insert(made_.begin(), path_);
  std::string who;
  if (!take(who)) throw BadFile(fmt::format("{}: is being trained by {}", path_, who));
}

void RunDirectory::hold(const std::string& path, double patience,
                        const std::function<void(const std::string&)>& say) {
  path_ = path;
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  make_parents();
  const bool before = fs::exists(path_);
  make_directory(path_);
  if (!before) made_.insert(made_.begin(), path_);
  const auto began = Clock::now();
  std::string who;
  for (bool said = false; !take(who); said = true) {
    if (Clock::now() - began >= std::chrono::duration<double>(patience))
      throw BadFile(fmt::format("{}: is being trained by {}; wait until it has ended, {}", path_, who,
                                fs::exists(membership_note_in(path_))
                                    ? "stop it, or take part in it with --join " + shell_word(path_)
                                    : "or stop it"));
    if (!said) say(fmt::format("{} is being trained by {}; waiting for it to end", path_, who));
    comm::nap(std::chrono::milliseconds(100));
  }
  if (!who.empty())
    say(fmt::format("{} was last trained by {}, which did not end by itself; make sure that it has ended",
                    path_, who));
}

void RunDirectory::join(const std::string& path) {
  path_ = path;
  file_ = comm::Fd(open((path_ + '/' + kLockFile).c_str(), O_RDWR | O_CLOEXEC));
  // A newcomer's rank may be that by which another worker has locked its byte.
  for (off_t b = byte_; file_ && lock(F_WRLCK, b, 1) == kTaken; b += kMostWorkers) {}
}

void RunDirectory::take_over() {
  if (std::exchange(first_, true) || !file_) return;
  try {
    leave_note();
  } catch (const BadFile&) {}  // for want of space, but a run that goes on need not end for a note
}

RunDirectory::Answer RunDirectory::lock(short kind, off_t from, off_t bytes) {
  struct flock range {};
  range.l_type = kind, range.l_whence = SEEK_SET, range.l_start = from, range.l_len = bytes;
  if (fcntl(file_.get(), F_OFD_SETLK, &range) == 0) return kFree;
  return errno == EAGAIN || errno == EACCES ? kTaken : kUnknown;
}

// A process that locks all bytes at once keeps the first and releases the rest for the other ranks; no other
// process can lock them all until these end. On false, `who` is the process that trains here. On true, `who`
// is a process on another host whose note does not say that it ended, if there is one.
bool RunDirectory::take(std::string& who) {
  const std::string name = path_ + '/' + kLockFile;
  file_ = comm::Fd(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) throw BadFile(text(name, ": cannot be opened: ", std::strerror(errno)));
  const Note note = read_note(file_.get());
  const Answer all = lock(F_WRLCK, 0, 0);
  who = note.words();
  if (all == kTaken || (all == kUnknown && note.lives_here() && !note.is_ours())) {
    file_ = {};
    return false;
  }
  struct stat s {};
  // Its last holder has just removed it.
  if (fstat(file_.get(), &s) == 0 && s.st_nlink == 0) return take(who);
  if (all == kFree) lock(F_UNLCK, 1, 0);
  who = note.pid > 0 && note.host != host_name() ? note.words() : "";
  leave_note();
  return true;
}

void RunDirectory::leave_note() {
  const std::string note =
      fmt::format("host {} pid {} since {}\n", host_name(), getpid(), birth_of(getpid()));
  if (ftruncate(file_.get(), 0) != 0 ||
      pwrite(file_.get(), note.data(), note.size(), 0) != ssize_t(note.size()))
    throw BadFile(text(path_, '/', kLockFile, ": cannot be written: ", std::strerror(errno),
                       "; free some space there or choose another --output"));
}

}  // namespace skein::apps
