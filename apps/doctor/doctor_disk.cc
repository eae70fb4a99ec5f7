// Checks the disk of the run's directory: free space, speed, and its clock.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "apps/base/host.h"
#include "apps/doctor/doctor.h"
#include "comm/join/sockets.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

constexpr double kLittle = 512 * kMega,
                 kTight = 4 * kGiga;  // a checkpoint of resnet50 and 4 workers takes 0.8 GB
constexpr double kSlow = 20e6;        // bytes a second
constexpr double kSkew = 2;           // seconds

// Writes up to 64 MB, or for two seconds, and flushes. Returns bytes per second, or 0 with errno set.
double write_speed(const comm::Fd& f) {
  const std::vector<char> block(size_t(kMega), 'x');
  const double began = wall_clock();
  double bytes = 0;
  for (int i = 0; i < 64 && wall_clock() - began < 2; ++i) {
    const ssize_t n = write(f.get(), block.data(), block.size());
    if (n >= 0 && n != ssize_t(block.size())) errno = ENOSPC;  // a short write sets no errno
    if (n != ssize_t(block.size())) return 0;
    bytes += double(block.size());
  }
  if (fdatasync(f.get()) != 0) return 0;
  return bytes / std::max(1e-6, wall_clock() - began);
}

}  // namespace

void check_disk(const Patient& p, Findings& out) {
  std::error_code none;
  fs::path place = fs::absolute(p.config.output.empty() ? "runs" : p.config.output, none);
  while (fs::status(place, none).type() == fs::file_type::not_found && place.has_relative_path())
    place = place.parent_path();
  const std::string where = place.string();
  const char* const another = "--output DIR with a directory of yours";
  if (!fs::is_directory(place, none))
    return out.push_back(
        problem("disk", text(where, ": ", none ? none.message() : "is no directory"), another));

  std::string name = (place / ".skein-doctor-XXXXXX").string();
  const comm::Fd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file)
    return out.push_back(
        problem("disk", fmt::format("{} cannot be written: {}", where, std::strerror(errno)), another));
  struct stat made {};
  fstat(file.get(), &made);
  const double skew = double(made.st_mtim.tv_sec) + 1e-9 * double(made.st_mtim.tv_nsec) - wall_clock();
  unlink(name.c_str());

  struct statvfs s {};
  fstatvfs(file.get(), &s);
  const double left = double(s.f_bavail) * double(s.f_frsize);
  const std::string room = fmt::format("{} has {:.1f} GB free", where, left / kGiga);
  const char* const make_room = "remove old runs, --keep-checkpoints 1, or --output on another disk";
  const double speed = write_speed(file);
  if (left < kLittle || speed == 0)
    out.push_back(
        problem("disk", speed == 0 ? fmt::format("{}: writing failed: {}", room, std::strerror(errno)) : room,
                make_room));
  else if (left < kTight)
    out.push_back(warning("disk", room, make_room));
  else if (speed < kSlow)
    out.push_back(warning("disk", fmt::format("{}, but takes only {:.0f} MB/s", room, speed / 1e6),
                          "a larger --checkpoint-every, or --output on a faster disk"));
  else
    out.push_back(in_order("disk", fmt::format("{} and takes {:.0f} MB/s", room, speed / 1e6)));
  if (std::abs(skew) > kSkew)
    out.push_back(warning("clock",
                          fmt::format("files of {} are {:+.1f} s off this host's clock", where, skew),
                          "set the clocks of this host and of the file server by NTP (chronyc makestep)"));
}

}  // namespace skein::apps
