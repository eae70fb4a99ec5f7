// Supervisor: what its wards write and report.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/launch/crew/superior.h"
#include "apps/launch/crew/supervisor.h"

namespace skein::apps {

using comm::Fd;

void Supervisor::listen(int patience_ms) {
  std::vector<pollfd> waits;
  if (superior_) waits.push_back({superior_.get(), POLLIN, 0});
  const bool silent =
      std::none_of(wards_.begin(), wards_.end(), [](const Ward& w) { return bool(w.errors); });
  for (const Ward& w : wards_) {
    for (const Fd* f : {&w.errors, &w.output, &w.reports})
      if (*f) waits.push_back({f->get(), POLLIN, 0});
    if (w.orders && !w.unsent.empty()) waits.push_back({w.orders.get(), POLLOUT, 0});
  }
  poll(waits.data(), waits.size(), silent ? std::min(patience_ms, 20) : patience_ms);
  for (Ward& w : wards_) {
    w.send_orders();
    hear(w, w.errors, w.error_line, true);
    hear(w, w.output, w.output_line, false);
  }
}

void Supervisor::hear(Ward& w, Fd& from, std::string& line, bool is_error) {
  if (!from) return;
  char buffer[4096];
  ssize_t n;
  while ((n = read(from.get(), buffer, sizeof buffer)) > 0) line.append(buffer, size_t(n));
  if (n == 0) from = {};
  if (!from && !line.empty() && line.back() != '\n' && !w.plain) line += '\n';
  for (size_t end; (is_error || !w.plain) && (end = line.find('\n')) != std::string::npos;) {
    const std::string one = line.substr(0, end + 1);
    line.erase(0, end + 1);
    if (!heard || !heard(w, one.substr(0, end), is_error)) show(w, one, is_error);
  }
  if (is_error || !w.plain) return;
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  line.clear();
}

void Supervisor::show(Ward& w, const std::string& line, bool is_error) {
  if (!is_error) {
    std::printf("%s%s", w.prefix.c_str(), line.c_str());
    std::fflush(stdout);
    return;
  }
  if (shown_.size() > 10000) shown_.clear();
  if (shown_.insert(line).second) std::fprintf(stderr, "%s%s", w.prefix.c_str(), line.c_str());
}

void Supervisor::take_reports() {
  std::string words(kLongestReport, '\0');
  for (Ward& w : wards_) {
    if (!w.reports) continue;
    ssize_t n;
    while ((n = recv(w.reports.get(), words.data(), words.size(), MSG_DONTWAIT)) > 0)
      take_report(w, words.substr(0, size_t(n)));
    if (n == 0) w.reports = {};
  }
}

}  // namespace skein::apps
