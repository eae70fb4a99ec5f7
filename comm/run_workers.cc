// One thread a rank over the local transport.
#include "comm/run_workers.h"

#include <omp.h>

#include <exception>
#include <mutex>
#include <thread>

#include "comm/sockets.h"

namespace skein::comm {

void run_workers(int n, const std::function<void(Communicator&)>& work, const CommunicatorOptions& options) {
  CHECK(n >= 1, n);
  CommunicatorOptions o = options;
  if (o.key.empty()) o.key = random_bytes(32);
  auto world = local_world(n);
  std::mutex mutex;
  std::exception_ptr first;  // in time: those after it only miss their peer
  std::vector<std::thread> threads;
  for (size_t r = 0; r < world.size(); ++r)
    threads.emplace_back([&, r] {
      omp_set_num_threads(std::max(1, omp_get_num_procs() / n));
      try {
        Communicator c(*world[r], o);
        work(c);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      world[r].reset();
    });
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace skein::comm
