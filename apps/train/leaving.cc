// One message from each asynchronous worker to each other, when it is told to leave.
#include "apps/train/leaving.h"

#include "apps/base/clock.h"

namespace skein::apps {

namespace {
constexpr double kLastToHear =
    2;                         // seconds that pass at most until all workers of a job are told that it ends
constexpr double kLook = 0.1;  // seconds between two looks at whether this worker has been told
constexpr comm::Tag kLeave = comm::kOwnTags - 4;
}  // namespace

Leaving::~Leaving() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

// In a simulated world each look of a thread would cost an event, and no step is long enough to need it.
void Leaving::begin() {
  if (run_.asynchronous && run_.setup.place.council && !comm::timeline_here)
    watcher_ = comm::Thread([this] { watch(); });
}

void Leaving::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, comm::after(kLook), [&] { return over_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void Leaving::look() {
  {
    const std::lock_guard lock(mutex_);
    if (since_ != 0 || !run_.asked_to_leave()) return;
    since_ = clock_seconds();
  }
  if (!run_.asynchronous) return;
  comm::Communicator& comm = run_.comm();
  for (int r = 0; r < comm.size(); ++r) try {
      if (r != comm.rank()) comm.push(r, kLeave, 0, 1, Tensor::zeros({1}));
    } catch (const Error&) {  // who is lost, or in the next epoch of the membership already, need not be told
    }
}

bool Leaving::is_of_all() {
  while (run_.comm().poll(comm::kAnyone, kLeave)) ++others_;
  return run_.asked_to_leave() && others_ + 1 >= run_.comm().size();
}

bool Leaving::is_due() {
  const std::lock_guard lock(mutex_);
  return since_ != 0 && clock_seconds() - since_ > kLastToHear;
}

}  // namespace skein::apps
