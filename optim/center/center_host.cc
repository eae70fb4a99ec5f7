// CenterHost: a reason in place of an invitation begins with a mark.
#include "optim/center/center_host.h"

#include <omp.h>

#include <utility>

namespace skein::optim {
namespace {

constexpr char kTrouble = '!';

}  // namespace

std::string CenterHost::open(const Options& o, std::unique_ptr<comm::Communicator> twin, int workers,
                             const Center::Column& column, int64_t kept) {
  try {
    center_ = std::make_unique<Center>(o, std::move(twin), workers, column, kept);
    return center_->invitation().words();
  } catch (const Error& e) { return kTrouble + std::string(e.what()); }
}

void CenterHost::require_invitation(const std::string& words) {
  if (words[0] == kTrouble) throw BadFile(words.substr(1));
}

void CenterHost::serve_beside() {
  thread_ = comm::Thread([this, team = omp_get_max_threads()] {
    omp_set_num_threads(team);
    center_->serve([this] { return !stop_.load(); });
  });
}

void CenterHost::close() {
  stop_ = true;
  if (center_) center_->wake();
  if (thread_.joinable()) thread_.join();
}

}  // namespace skein::optim
