// Claims by messages to the launcher, or by files.
#include "apps/launch/elastic/register.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "apps/base/environment.h"
#include "apps/launch/crew/superior.h"
#include "comm/clock.h"
#include "comm/join/sockets.h"
#include "engine/words/file.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

// The file kHere says how many of the directories that lead to it the founder has made.
constexpr const char *kDirectory = "membership", *kHere = "here";
constexpr size_t kNameBytes = 8;
constexpr double kBecomesVisible =
    0.5;  // seconds that a network file system has to show what another host has made
constexpr int64_t kMostBytes = int64_t(1) << 28, kMostDigits = 8;

std::string word_of_launcher(const std::string& launcher) { return launcher.empty() ? "" : " @" + launcher; }
std::string word_of_directory(const std::string& name) { return name.empty() ? "" : " @/" + name; }
bool has_word(const std::string& card, const std::string& word) {
  return (card + ' ').find(word + ' ') != std::string::npos;
}

std::string draw() { return comm::hex(comm::random_bytes(kNameBytes)); }

// False: there is a file of this name, which may be this one, because a network file system repeats calls.
// What is in place is whole.
bool put_first(const fs::path& path, const std::string& bytes) {
  const fs::path aside = path.parent_path() / ("." + draw());
  write_file(aside, bytes);
  const int error = link(aside.c_str(), path.c_str()) == 0 ? 0 : errno;
  std::error_code none;
  fs::remove(aside, none);
  if (error && !fs::exists(path, none))
    throw FileError(text(path.string(), ": cannot link a file here: ", std::strerror(error)), error);
  return !error;
}

// The register's directory, and of those above it so many, with it, as are empty then.
void remove_with_parents(fs::path directory, int made) {
  std::error_code none;
  fs::remove_all(directory, none);
  for (made = std::max(made, 2); --made > 0;) fs::remove(directory = directory.parent_path(), none);
}

}  // namespace

Register::Register() {
  if (number(kReportsVariable)) launcher_ = variable(kRegisterVariable).value_or("");
}

bool Register::is_name(const std::string& s) {
  return s.size() == 2 * kNameBytes && s.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string Register::found(const fs::path& run) {
  const std::string name = draw();
  const fs::path directory = fs::absolute(run) / kDirectory / name;
  int made = 0;
  try {
    for (fs::path d = directory; !d.empty() && !fs::exists(d); d = d.parent_path()) ++made;
    fs::create_directories(directory);
    if (put_first(directory / kHere, std::to_string(made))) {
      directory_ = directory, name_ = name, founder_ = true;
      return name;
    }
  } catch (const std::exception&) {}     // a run that cannot write there says so itself
  remove_with_parents(directory, made);  // this file system has no links, or no space
  return "";
}

bool Register::enter(const fs::path& run, const std::string& name) {
  if (!is_name(name)) return false;
  const fs::path directory = fs::absolute(run) / kDirectory / name;
  std::error_code none;
  for (const auto deadline = comm::after(kBecomesVisible); !fs::exists(directory / kHere, none);) {
    if (comm::Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    look_afresh(directory);
  }
  directory_ = directory, name_ = name;
  return true;
}

std::string Register::words() const { return word_of_launcher(launcher_) + word_of_directory(name_); }

// The members of a view all find the same.
Register::Decider Register::decider(const comm::View& now) const {
  const auto all_know = [&](const std::string& word) {
    return !word.empty() && std::all_of(now.members.begin(), now.members.end(),
                                        [&](const auto& m) { return has_word(m.card, word); });
  };
  if (all_know(word_of_launcher(launcher_))) return kLauncher;
  return all_know(word_of_directory(name_)) ? kFiles : kNobody;
}

std::optional<comm::View> Register::claim(const comm::View& now, const comm::View& next) const {
  if (decider(now) == kFiles) return claim_file(next);
  const auto kept = claim_epoch(next.epoch, next.write());
  return kept ? comm::View::read(*kept) : std::nullopt;
}

// Whether link() has succeeded does not matter, and a network file system may not know: the file tells.
std::optional<comm::View> Register::claim_file(const comm::View& next) const try {
  const fs::path path = directory_ / text("epoch-", next.epoch);
  std::error_code none;
  if (!fs::exists(path, none)) (void)put_first(path, next.write());
  return comm::View::read(read_file(path, kMostBytes));
} catch (const FileError&) {
  std::error_code none;
  if (fs::exists(directory_ / kHere, none)) throw;
  return {};  // the file system is away, or the run has ended
}

void Register::remove() {
  if (name_.empty()) return;
  int made = 0;
  try {
    made = number_in<int>(read_file(directory_ / kHere, kMostDigits)).value_or(0);
  } catch (const Error&) {}  // another member has removed it
  remove_with_parents(directory_, made);
  name_.clear();
}

}  // namespace skein::apps
