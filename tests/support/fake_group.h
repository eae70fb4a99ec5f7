// A group of devices that are threads of this process and sum in host memory, at a shared table.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "engine/device/device_group.h"

namespace skein::testing {

// Where members of one group meet: each brings the address of its bytes, and all leave
// together with all addresses.
class Table {
 public:
  explicit Table(int size) : size_(size), here_(size_t(size)) {}
  // The last member that comes runs f(all). Returns false if the group was aborted.
  template <class F>
  bool meet(int rank, void* mine, F f) {
    std::unique_lock lock(mutex_);
    here_[size_t(rank)] = mine;
    const int64_t round = round_;
    if (++arrived_ == size_) {
      f(here_);
      arrived_ = 0, ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return ended_ || round_ != round; });
    }
    return round_ != round;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  const int size_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<void*> here_;
  int arrived_ = 0;
  int64_t round_ = 0;
  bool ended_ = false;
};

// Tables by the id of their group.
inline std::shared_ptr<Table> table_of(const std::string& id, int size) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, std::shared_ptr<Table>>;
  const std::lock_guard lock(mutex);
  auto& t = all[id];
  if (!t) t = std::make_shared<Table>(size);
  return t;
}

template <class T>
void sum_into_all(const std::vector<void*>& all, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (void* x : all) sum += double(static_cast<T*>(x)[i]);
    for (void* x : all) static_cast<T*>(x)[i] = T(sum);
  }
}

}  // namespace skein::testing
