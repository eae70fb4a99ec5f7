// One thread per rank over the local transport.
#include "comm/communicator/run_workers.h"

#include <omp.h>

#include <exception>
#include <mutex>

#include "comm/join/rendezvous.h"

namespace skein::comm {

void on_threads(int n, const std::function<void(Rank)>& f, const std::function<void(Rank)>& ended) {
  CHECK(n >= 1, n);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<Thread> threads;
  for (Rank r = 0; r < n; ++r)
    threads.emplace_back([&, r] {
      try {
        f(r);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      if (ended) ended(r);
    });
  for (Thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

// A worker's exception is stored before the worker leaves, so that the PeerLost of the others comes after it.
void run_workers(int n, const std::function<void(Communicator&)>& work, const CommunicatorOptions& options) {
  CHECK(n >= 1, n);
  CommunicatorOptions o = options;
  if (o.key.empty()) o.key = Secret::random(kJobKeyBytes);
  auto world = local_world(n);
  const auto worker = [&](Rank r) {
    omp_set_num_threads(std::max(1, omp_get_num_procs() / n));
    Communicator c(*world[size_t(r)], o);
    work(c);
  };
  on_threads(n, worker, [&](Rank r) { world[size_t(r)].reset(); });
}

}  // namespace skein::comm
