// One write a line, so that a process that is killed leaves whole ones.
#include "apps/train/used_images.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/base/clock.h"
#include "apps/base/environment.h"
#include "comm/membership/council.h"

namespace skein::apps {

UsedImages::UsedImages(const Run& run) : run_(run) {
  const auto directory = variable("SKEIN_USED_IMAGES");
  if (!directory) return;
  if (run.setup.place.council) epoch_ = run.setup.place.council->now().epoch;
  const std::string path = text(*directory, '/', getpid(), '-', run.setup.place.rank);
  file_ = comm::Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw BadFile(text("SKEIN_USED_IMAGES: ", path, ": ", std::strerror(errno)));
}

void UsedImages::write(const char* word, const std::string& rest) {
  const std::string line = text(word, ' ', epoch_, ' ', run_.setup.place.rank, ' ', run_.k, rest, '\n');
  if (::write(file_.get(), line.data(), line.size()) != ssize_t(line.size()))
    throw BadFile(text("SKEIN_USED_IMAGES: ", std::strerror(errno)));
}

void UsedImages::begin() {
  if (!file_) return;
  const data::Portions& p = *run_.setup.portions;
  const int rank = run_.setup.place.rank;
  std::string images;
  for (int64_t i = 0; i < p.samples(run_.k, rank); ++i) images += text(' ', p.index(run_.k, rank, i));
  write("begun", images);
}

void UsedImages::end() {
  if (file_) write("taken", fmt::format(" {:.6f}", clock_seconds()));
}

void UsedImages::tell() {
  if (file_) write("told", "");
}

}  // namespace skein::apps
