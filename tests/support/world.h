// Worlds for tests: ranks are threads of this process, and what a rank throws is rethrown in the test.
#pragma once
#include <gtest/gtest.h>
#include <omp.h>

#include <functional>
#include <thread>

#include "comm/communicator/run_workers.h"
#include "comm/communicator/world_of_one.h"
#include "comm/transports/local_transport.h"
#include "engine/vectors/vec.h"

namespace skein::comm {

// f(communicator) for each of n ranks over the given transports.
inline void in_world(std::vector<std::unique_ptr<Transport>>& world,
                     const std::function<void(Communicator&)>& f, CommunicatorOptions o = {.deadline = 20}) {
  on_threads(int(world.size()), [&](Rank r) {
    omp_set_num_threads(1);
    Communicator c(*world[size_t(r)], o);
    f(c);
  });
}
inline void in_local_world(int n, const std::function<void(Communicator&)>& f,
                           CommunicatorOptions o = {.deadline = 20}) {
  auto world = local_world(n);
  in_world(world, f, o);
}

inline Tensor ones(int64_t n, float a = 1) {
  Tensor x({n});
  fill(x, a);
  return x;
}

// The exchange of ranks that are threads of one process.
class ThreadExchange final : public Exchange {
 public:
  struct Table {
    explicit Table(int n) : words(static_cast<size_t>(n)) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> words, complete;
    int arrived = 0, left = 0;
  };
  ThreadExchange(std::shared_ptr<Table> t, Rank r) : table_(std::move(t)), rank_(r) {}
  Rank rank() const override { return rank_; }
  int size() const override { return int(table_->words.size()); }
  std::vector<std::string> all_gather(const std::string& mine) override {
    Table& t = *table_;
    std::unique_lock lock(t.mutex);
    t.changed.wait(lock, [&] { return t.left == 0; });
    t.words[size_t(rank_)] = mine;
    if (++t.arrived == size()) {
      t.complete = t.words;
      t.left = size();
      t.arrived = 0;
      t.changed.notify_all();
    } else {
      t.changed.wait(lock, [&] { return t.left > 0; });
    }
    std::vector<std::string> all = t.complete;
    if (--t.left == 0) t.changed.notify_all();
    return all;
  }

 private:
  std::shared_ptr<Table> table_;
  const Rank rank_;
};

}  // namespace skein::comm
