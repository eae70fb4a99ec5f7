// Who takes the place of a dead worker, and when.
#include "apps/launch/crew/replacements.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "apps/launch/crew/losses.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/elastic/role.h"

namespace skein::apps {
namespace {

using comm::Clock;

// Workers that meet the same error end together. A worker that failed by itself is replaced only if others
// are left so much later.
constexpr auto kTogether = std::chrono::milliseconds(500);

std::string how_it_ended(const Ward& w) {
  if (WIFSIGNALED(w.status))
    return text(" was killed by signal ", WTERMSIG(w.status), " (", strsignal(WTERMSIG(w.status)), ')');
  return w.exit_code() == kExitGivenUp ? std::string(" was given up by the others")
                                       : text(" ended with status ", w.exit_code());
}

// A newcomer may be interrupted alone, but a member only with all others.
bool has_finished(const Ward& w) {
  return !w.leaving && (w.status == 0 || (w.exit_code() == kExitInterrupted && (w.member || !w.fresh)));
}

void tell(Ward& w, const std::string& words) {
  if (w.orders) return w.order(words);
  if (w.reports) (void)!send(w.reports.get(), words.data(), words.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

void Replacements::replace_by(Restarts restarts, std::function<void(size_t number)> become) {
  restarts_ = std::move(restarts);
  become_ = std::move(become);
}

void Replacements::take_report(Ward& w, const std::string& report) {
  if (report.starts_with(kMember)) {
    begun_ = w.member = true;
    deserted_ = false;
    place_ = report.substr(std::strlen(kMember));
  } else if (report == kLeaving) {
    w.leaving = true;
  } else if (report == kDeserted) {
    w.member = false;
  } else if (report.starts_with(kRegister) && !reported) {
    take_claim(w, report);
  }
  if (reported && report != kLeaving) reported(report);
}

void Replacements::take_claim(Ward& w, const std::string& words) {
  if (const auto claim = Claim::read(words))
    tell(w, kept_.emplace(claim->epoch, claim->write()).first->second);
}

void Replacements::answer(const std::string& words) {
  for (Ward& w : wards_) tell(w, words);
}

void Replacements::take_reports() {
  std::string words(kLongestReport, '\0');
  for (Ward& w : wards_) {
    if (!w.reports) continue;
    ssize_t n;
    while ((n = recv(w.reports.get(), words.data(), words.size(), MSG_DONTWAIT)) > 0)
      take_report(w, words.substr(0, size_t(n)));
    if (n == 0) w.reports = {};
  }
}

bool Replacements::all_left() const {
  return std::any_of(wards_.begin(), wards_.end(), [](const Ward& w) { return w.leaving; }) &&
         std::all_of(wards_.begin(), wards_.end(), [](const Ward& w) { return w.leaving || w.is_lost(); });
}

// Decides what follows the end of a ward, and says it.
void Replacements::judge(Ward& w) {
  if (!w.ended || w.judged) return;
  const int code = w.exit_code();
  if (code != 0 && WIFEXITED(w.status) && Clock::now() - w.ended_at < kTogether) return;
  w.judged = true;
  if (w.leaving || is_over()) return;
  if (has_finished(w)) return finish();
  if (!begun_) ending_.soon_after(w);
  if (!become_ && WIFEXITED(w.status)) return;
  const std::string follows = begun_ && become_ ? "; " + what_follows(w) : "";
  std::fprintf(stderr, "%s%s%s\n", w.name.c_str(), how_it_ended(w).c_str(), follows.c_str());
}

std::string Replacements::what_follows(Ward& w) {
  if (WIFEXITED(w.status) && w.exit_code() == kExitUsage) return "a fresh worker would end in the same way";
  if (WIFEXITED(w.status) && !w.member) return "it was no member yet, and is not replaced";
  if (WIFSIGNALED(w.status) && WTERMSIG(w.status) == SIGTERM) return "it was told to, and is not replaced";
  return seat_is_filled(w, w.ended_at, w.ended_at - w.began);
}

// Or not. `lived`: what was in the seat last, until this moment.
std::string Replacements::seat_is_filled(Ward& w, Clock::time_point since, Clock::duration lived) {
  const Restarts& r = restarts_;
  const size_t seat = size_t(&w - wards_.data());
  if (r.times() == 0) return "the others continue";
  const auto pause = restarts_.after_death(seat, lived);
  if (!pause)
    return text("the others continue, since the last of ", r.times(), " fresh workers has died there");
  w.fresh_at = since + *pause;
  return text("a fresh ", w.name == kServerName ? "server" : "worker", " takes its place in ",
              seconds(*pause), " s (", r.counted(seat), " of ", r.times(), ')');
}

void Replacements::finish() {
  if (finished_) return;
  finished_ = true;
  for (Ward& w : wards_) {
    if (w.fresh && !w.member && !w.ended) kill(w.pid, SIGKILL);
    if (w.orders) w.order(kThrough);
  }
}

// Whether there has been a member, and there is none. A ward may stand for several.
bool Replacements::deserted() const {
  return begun_ &&
         std::none_of(wards_.begin(), wards_.end(), [](const Ward& w) { return !w.ended && w.member; });
}

bool Replacements::expects_fresh() const {
  return !is_over() && std::any_of(wards_.begin(), wards_.end(),
                                   [](const Ward& w) { return w.fresh_at || (w.ended && !w.judged); });
}

void Replacements::replace_the_dead(bool has_superior) {
  for (Ward& w : wards_) judge(w);
  if (!deserted_ && deserted() && !is_over()) {
    deserted_ = true;
    if (reported) reported(kDeserted);
    if (!become_) finish();
  }
  for (size_t i = 0; i < wards_.size(); ++i) {
    Ward& w = wards_[i];
    if (!w.fresh_at || Clock::now() < *w.fresh_at || suspended_) continue;
    w.fresh_at.reset();
    if (is_over() || (deserted() && !has_superior)) continue;
    Ward next;
    next.name = w.name, next.prefix = w.prefix;
    next.fresh = true;
    try {
      spawn(next, {.reports = true}, mask_, [this, i] { become_(i); });
      w = std::move(next);
    } catch (const Error& e) {  // for want of memory or descriptors, which need not last
      const std::string follows = seat_is_filled(w, Clock::now(), {});
      std::fprintf(stderr, "%s: %s; %s\n", w.name.c_str(), e.what(), follows.c_str());
    }
  }
}

// A fresh worker that came too late to be a member cannot tell the end of a run from its failure.
int Replacements::status() const {
  bool finished = false, late = false;
  int failed = 0, lost = 0;
  for (const Ward& w : wards_) {
    const int code = w.exit_code();
    if (has_finished(w) && code == kExitInterrupted) return kExitInterrupted;
    (w.member || !w.fresh ? finished : late) |= has_finished(w);
    int& first = w.is_lost() ? lost : failed;
    if (first == 0) first = code;
  }
  return finished ? 0 : failed ? failed : late ? 0 : lost;
}

}  // namespace skein::apps
