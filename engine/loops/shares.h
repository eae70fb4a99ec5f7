// A loop on the host, divided among threads or not.
#pragma once
#include <omp.h>

#include <cstdint>

namespace skein {

// Calls f(from, to) for [0, n), or with a team for each thread's share of it. An OpenMP region whose `if` is
// false would cost as much as a system call: libgomp ends even a team of one with a futex.
template <class F>
void in_shares(int64_t n, bool team, const F& f) {
  if (!team) return f(int64_t(0), n);
#pragma omp parallel
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    f(n * me / threads, n * (me + 1) / threads);
  }
}

}  // namespace skein
