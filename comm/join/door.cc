// One application a caller, then a view or a hang-up.
#include "comm/join/door.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/join/reception.h"

namespace skein::comm {
namespace {

constexpr uint64_t kLongestApplication = 64 << 10, kLongestView = 64 << 20;  // bytes
constexpr double kApplicationPatience =
    2;                           // seconds in which a caller that has proved itself must send its application
constexpr double kGlance = 0.1;  // seconds between two checks for guests that have hung up
constexpr double kDay = 86400;   // seconds between two looks of a door that has no guests, and a bell

void append(std::string& to, const std::string& v) {
  const uint32_t n = uint32_t(v.size());
  to.append(reinterpret_cast<const char*>(&n), sizeof n).append(v);
}
bool take(const std::string& from, size_t& at, std::string& v) {
  uint32_t n = 0;
  if (from.size() - at < sizeof n) return false;
  std::memcpy(&n, from.data() + at, sizeof n);
  at += sizeof n;
  if (from.size() - at < n) return false;
  v = from.substr(at, n);
  at += n;
  return true;
}

// A door has no rank, because a caller does not know which member it reaches.
Credentials credentials(const Secret& key) { return {.key = key, .me = 0, .size = 1, .epoch = 0}; }

bool hung_up(const Fd& socket) {
  char byte;
  const ssize_t n = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

std::string write_application(const Application& a) {
  std::string out(reinterpret_cast<const char*>(&a.member.id), sizeof a.member.id);
  append(out, a.member.card);
  append(out, a.job);
  return out;
}

std::optional<Application> read_application(const std::string& bytes) {
  Application a;
  size_t at = sizeof a.member.id;
  if (bytes.size() < at) return {};
  std::memcpy(&a.member.id, bytes.data(), at);
  if (!take(bytes, at, a.member.card) || !take(bytes, at, a.job) || at != bytes.size()) return {};
  if (a.member.card.size() > kLongestCard) return {};
  a.member.has_state = false;
  return a;
}

Door::Door(const Fd& listener, const Secret& key, Refusals::Counter& strangers, Answers a)
    : listener_(listener),
      key_(key),
      strangers_(strangers),
      answers_(std::move(a)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
void Door::open() {
  thread_ = std::thread([this] { work(); });
}
Door::~Door() { close(); }
void Door::close() {
  stop_ = true;
  (void)!eventfd_write(bell_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

// A caller's errors, and a lack of descriptors or memory, must not end the member whose door this is.
void Door::work() {
  std::optional<Reception> callers;
  while (!stop_) try {
      if (!callers) callers.emplace(listener_, credentials(key_), strangers_);
      const bool sleeps = bell_ && waiting().empty();
      if (std::optional<Reception::Guest> g = callers->next(after(sleeps ? kDay : kGlance), &bell_)) {
        if (g->hello.purpose == Purpose::kJoin)
          hear(std::move(g->line));
        else
          ++strangers_;
      }
      drop_those_who_hung_up();
    } catch (const std::exception&) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }
}

void Door::hear(Line line) try {
  std::string said;
  std::optional<Application> a;
  if (line.read_string(said, after(kApplicationPatience), kLongestApplication)) a = read_application(said);
  if (!a) return void(++strangers_);
  if (a->member.id == kAsks) return answer(std::move(line), a->job);
  std::list<Guest> guest;
  guest.push_back({a->member.id, std::move(line)});
  const Guest* const me = &guest.front();
  {  // once it is admitted, it may be told at any time
    const std::lock_guard lock(mutex_);
    if (turns_away(guest.front().line)) return;
    waiting_.splice(waiting_.end(), guest);
  }
  const std::string why = why_not(*a);
  if (why.empty()) return;
  ++strangers_;
  {
    const std::lock_guard lock(mutex_);
    const auto still =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Guest& g) { return &g == me; });
    if (still == waiting_.end()) return;  // it has been told
    guest.splice(guest.end(), waiting_, still);
  }
  guest.front().line.write_trouble(why);
} catch (const std::exception&) { ++strangers_; }  // for example, it sent an error instead of an application

std::string Door::why_not(const Application& a) try {
  return answers_.admit(a);
} catch (const std::exception& e) { return e.what(); }

// A newcomer that comes after the end of the run is no stranger. Called under the lock.
bool Door::turns_away(Line& line) {
  if (ended_) line.write_string(ended_->write(), after(1));
  return ended_.has_value();
}

void Door::answer(Line line, const std::string& version) try {
  {
    const std::lock_guard lock(mutex_);
    if (turns_away(line)) return;
  }
  if (!answers_.describe) throw Error("this job is not described");
  line.write_string(answers_.describe(version), after(kApplicationPatience));
} catch (const Error& e) {
  ++strangers_;
  line.write_trouble(e.what());
}

void Door::drop_those_who_hung_up() {
  std::vector<MemberId> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto g = waiting_.begin(); g != waiting_.end();)
      if (hung_up(g->line.socket)) {
        gone.push_back(g->id);
        g = waiting_.erase(g);
      } else {
        ++g;
      }
  }
  for (const MemberId m : gone) answers_.gone(m);
}

std::vector<MemberId> Door::waiting() {
  const std::lock_guard lock(mutex_);
  std::vector<MemberId> all;
  for (const Guest& g : waiting_) all.push_back(g.id);
  return all;
}

void Door::tell(const View& v) {
  const std::lock_guard lock(mutex_);
  for (auto g = waiting_.begin(); g != waiting_.end();)
    if (v.has(g->id)) {
      g->line.write_string(v.write(), after(1));
      g = waiting_.erase(g);
    } else {
      ++g;
    }
}

void Door::tell(const End& e) {
  const std::lock_guard lock(mutex_);
  ended_ = e;
  for (Guest& g : waiting_) turns_away(g.line);
  waiting_.clear();
}

namespace {

// A newcomer that comes too late has interrupted nothing.
std::optional<std::string> say(const std::vector<std::string>& addresses, int port, const Secret& key,
                               const Application& a, Clock::time_point soon, Clock::time_point deadline) {
  auto line = call(connect_tcp(addresses, port, soon), credentials(key), 0, Purpose::kJoin, soon, soon);
  if (!line || !line->write_string(write_application(a), soon)) return {};
  std::string told;
  try {
    if (!line->read_string(told, deadline, kLongestView)) return {};
  } catch (const Timeout& refused) { throw Error(refused.what()); }
  if (const auto end = End::read(told)) throw RunEnded({.step = end->step});
  return told;
}

}  // namespace

std::optional<View> knock(const std::vector<std::string>& addresses, int port, const Secret& key,
                          const Application& a, Clock::time_point deadline) {
  const auto told = say(addresses, port, key, a, std::min(deadline, after(5)), deadline);
  return told ? View::read(*told) : std::nullopt;
}

std::optional<std::string> ask(const std::vector<std::string>& addresses, int port, const Secret& key,
                               const std::string& version, Clock::time_point deadline) {
  const Clock::time_point soon = std::min(deadline, after(5));
  Application a;
  a.member.id = kAsks, a.job = version;
  return say(addresses, port, key, a, soon, soon);
}

}  // namespace skein::comm
