// Arena: bump allocation in a sparse file, free lists by size class.
#include "comm/transports/arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <set>

namespace skein::comm {
namespace {

constexpr int64_t kPage = 4096, kLeast = 256;
int64_t pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Blocks begin on cache lines of their own. From a quarter of a page up they waste at most a fifth,
// like the engine's.
int64_t size_class(int64_t bytes) {
  if (bytes <= kLeast) return kLeast;
  const int64_t step = std::max<int64_t>(64, int64_t(std::bit_floor(uint64_t(bytes - 1))) / 4);
  return (bytes + step - 1) / step * step;
}

// Half of what a process has with 47 bits; GPU libraries and UCX reserve some, too.
constexpr int64_t kAddresses = int64_t(1) << 46;

// Programs fork in the middle of a run, for instance to load data. What the new process writes on its way to
// its end must not reach the parameters of the worker, nor its messages.
struct Forks {
  std::mutex mutex;
  std::set<const Mapping*> mappings;
};
Forks& forks() {
  static Forks& all = *new Forks;  // never destroyed: mappings may end after static objects
  [[maybe_unused]] static const int watched =
      pthread_atfork([] { forks().mutex.lock(); }, [] { forks().mutex.unlock(); },
                     [] {
                       for (const Mapping* m : forks().mappings) m->make_private();
                       forks().mutex.unlock();
                     });
  return all;
}

}  // namespace

int64_t arena_bytes(int64_t processes, int64_t memory) {
  const auto generous = int64_t(std::bit_ceil(uint64_t(memory))) * 2;
  return std::min(generous, int64_t(std::bit_floor(uint64_t(kAddresses / processes))));
}

// The addresses of one offset in two mappings must not differ by a power of two: such addresses fall into one
// set of the first cache and look alike to its way predictor, and a sum of two windows takes three times as
// long (Zen 3). So each mapping of a process begins some pages further into its range, and each rank's blocks
// some cache lines further into their pages.
Mapping::Mapping(const Fd& fd, int64_t bytes) : bytes(bytes), file_(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)) {
  static std::atomic<int64_t> mappings{0};
  const int64_t shift = (3 * ++mappings % 255 + 1) * kPage;
  range_ = static_cast<char*>(mmap(nullptr, size_t(bytes + 256 * kPage), PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  void* p = range_ == MAP_FAILED ? MAP_FAILED
                                 : mmap(range_ + shift, size_t(bytes), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd.get(), 0);
  if (p == MAP_FAILED)
    fail_system(text("mapping ", bytes >> 30, " GiB of shared address space (is there a ulimit -v?)"));
  madvise(p, size_t(bytes), MADV_HUGEPAGE);  // many kernels do not grant it for shared memory
  madvise(p, size_t(bytes), MADV_DONTDUMP);
  base = static_cast<char*>(p);
  Forks& all = forks();
  const std::lock_guard lock(all.mutex);
  all.mappings.insert(this);
}
Mapping::~Mapping() {
  {
    const std::lock_guard lock(forks().mutex);
    forks().mappings.erase(this);
  }
  munmap(range_, size_t(bytes + 256 * kPage));
}

void Mapping::make_private() const {
  mmap(base, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, file_.get(), 0);
  madvise(base, size_t(bytes), MADV_DONTDUMP);
}

Arena::Arena(int64_t bytes, int64_t reserved, Rank owner)
    : file_(memfd_create("skein", MFD_CLOEXEC)), color_(owner * 5 % 16 * kLeast), next_(pages(reserved)) {
  if (!file_ || ftruncate(file_.get(), bytes) != 0)
    fail_system(text("making a shared memory file of ", bytes >> 30, " GiB"));
  mapping_ = std::make_shared<Mapping>(file_, bytes);
}

void* Arena::take(int64_t asked) {
  const int64_t bytes = size_class(asked);
  const std::lock_guard lock(mutex_);
  ++live_;
  if (auto& blocks = free_[bytes]; !blocks.empty()) {
    void* p = blocks.back();
    blocks.pop_back();
    return p;
  }
  if (next_ + bytes + 2 * kPage > mapping_->bytes && live_--)
    throw Error(text("out of shared memory: ", asked, " bytes asked for, the arena holds ", mapping_->bytes));
  if (bytes >= 1 << 16) next_ = pages(next_) + color_;
  void* p = mapping_->base + next_;
  next_ += bytes;
  return p;
}

void Arena::give(void* p, int64_t asked) noexcept {
  std::unique_lock lock(mutex_);
  free_[size_class(asked)].push_back(p);
  if (--live_ > 0 || !retired_) return;
  lock.unlock();
  delete this;
}

void Arena::retire() {
  std::unique_lock lock(mutex_);
  retired_ = true;
  if (live_ > 0) return;
  lock.unlock();
  delete this;
}

}  // namespace skein::comm
