// Claims by messages to the launcher, or by files.
#include "apps/launch/elastic/register.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "apps/base/environment.h"
#include "apps/launch/crew/superior.h"
#include "comm/clock.h"
#include "comm/join/sockets.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char *kDirectory = "membership", *kHere = "here";
constexpr size_t kNameBytes = 8;
constexpr double kBecomesVisible =
    0.5;  // seconds that a network file system has to show what another host has made
constexpr int64_t kMostBytes = int64_t(1) << 28;

std::string draw() { return comm::hex(comm::random_bytes(kNameBytes)); }

// False: there was a file of this name. What is in place is whole.
bool put_first(const fs::path& path, const std::string& bytes) {
  const fs::path aside = path.parent_path() / ("." + draw());
  write_file(aside, bytes);
  const bool first = link(aside.c_str(), path.c_str()) == 0;
  std::error_code none;
  fs::remove(aside, none);
  return first;
}

}  // namespace

Register::Register() {
  if (number(kReportsVariable)) launcher_ = variable(kRegisterVariable).value_or("");
}

bool Register::is_name(const std::string& s) {
  return s.size() == 2 * kNameBytes && s.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string Register::found(const fs::path& run) try {
  if (!launcher_.empty()) return "";
  const std::string name = draw();
  const fs::path directory = fs::absolute(run) / kDirectory / name;
  for (fs::path d = directory; !d.empty() && !fs::exists(d); d = d.parent_path()) made_.push_back(d);
  fs::create_directories(directory);
  directory_ = directory, name_ = name;
  if (!put_first(directory / kHere, "")) remove(), name_.clear();  // this file system has no links
  return name_;
} catch (const std::exception&) { return ""; }  // a run that cannot write there says so itself

bool Register::enter(const fs::path& run, const std::string& name) {
  if (!launcher_.empty() || !is_name(name)) return false;
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

std::string Register::word() const {
  if (!launcher_.empty()) return text(" @", launcher_);
  return name_.empty() ? "" : text(" @/", name_);
}

bool Register::decides(const comm::View& now) const {
  const std::string mine = word();
  return !mine.empty() && std::all_of(now.members.begin(), now.members.end(),
                                      [&](const comm::View::Member& m) { return m.card.ends_with(mine); });
}

// Whether link() has succeeded does not matter, and a network file system may not know: the file tells.
std::optional<comm::View> Register::claim(const comm::View& v) const try {
  if (!launcher_.empty()) {
    const auto kept = claim_epoch(v.epoch, v.write());
    return kept ? comm::View::read(*kept) : std::nullopt;
  }
  const fs::path path = directory_ / text("epoch-", v.epoch);
  std::error_code none;
  if (!fs::exists(path, none)) (void)put_first(path, v.write());
  return comm::View::read(read_file(path, kMostBytes));
} catch (const Error&) { return {}; }  // a full disk, or one that is not there: it is asked again

void Register::remove() {
  if (name_.empty()) return;
  std::error_code none;
  fs::remove_all(directory_, none);
  fs::remove(directory_.parent_path(), none);                 // if it is empty
  for (const fs::path& made : made_) fs::remove(made, none);  // so are these
}

}  // namespace skein::apps
