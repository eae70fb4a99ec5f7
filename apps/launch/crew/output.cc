// Lines of several processes on one terminal.
#include "apps/launch/crew/output.h"

#include <unistd.h>

#include <cstdio>

namespace skein::apps {

void Output::pass_on(Ward& w) {
  hear(w, w.errors, w.error_line, true);
  hear(w, w.output, w.output_line, false);
}

void Output::hear(Ward& w, comm::Fd& from, std::string& line, bool is_error) {
  if (!from) return;
  char buffer[4096];
  ssize_t n;
  while ((n = read(from.get(), buffer, sizeof buffer)) > 0) line.append(buffer, size_t(n));
  if (n == 0) from = {};
  if (!from && !line.empty() && line.back() != '\n' && (is_error || !w.plain)) line += '\n';
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

void Output::show(Ward& w, const std::string& line, bool is_error) {
  if (!is_error) {
    std::printf("%s%s", w.prefix.c_str(), line.c_str());
    std::fflush(stdout);
    return;
  }
  if (shown_.size() > 10000) shown_.clear();
  if (shown_.insert(line).second) std::fprintf(stderr, "%s%s", w.prefix.c_str(), line.c_str());
}

}  // namespace skein::apps
