#include "engine/loops/copy_past_caches.h"

#include <cstdint>
#include <cstring>

#include "engine/loops/shares.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace skein {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kFrom = size_t(64) << 10;  // less hardly changes what the caches hold
constexpr size_t kByTeam = size_t(4) << 20;

// `to` begins at a line of the caches.
void copy_lines(char* to, const char* from, size_t lines) {
#ifdef __x86_64__
  constexpr size_t kWidth = sizeof(__m256i);
  for (size_t i = 0; i < lines * kLine; i += kWidth)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  _mm_sfence();  // for the threads that read it
#else
  std::memcpy(to, from, lines * kLine);
#endif
}

}  // namespace

void copy_past_caches(void* to, const void* from, size_t bytes) {
  char* const y = static_cast<char*>(to);
  const char* const x = static_cast<const char*>(from);
  const size_t off = reinterpret_cast<uintptr_t>(to) % kLine, head = off > 0 ? kLine - off : 0;
  if (bytes < kFrom) return void(std::memcpy(y, x, bytes));
  const size_t lines = (bytes - head) / kLine, tail = head + lines * kLine;
  std::memcpy(y, x, head);
  in_shares(int64_t(lines), bytes >= kByTeam && omp_get_max_threads() > 1, [=](int64_t begin, int64_t end) {
    const size_t at = head + size_t(begin) * kLine;
    copy_lines(y + at, x + at, size_t(end - begin));
  });
  std::memcpy(y + tail, x + tail, bytes - tail);
}

}  // namespace skein
