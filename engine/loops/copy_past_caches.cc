#include "engine/loops/copy_past_caches.h"

#include <cstdint>
#include <cstring>

#include "engine/loops/shares.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace skein {
namespace {

constexpr size_t kFrom = size_t(64) << 10;  // less hardly changes what the caches hold
constexpr size_t kByTeam = size_t(4) << 20;

}  // namespace

void put_lines(void* to, const void* from, size_t lines) {
#ifdef __x86_64__
  auto* const y = static_cast<__m256i*>(to);
  const auto* const x = static_cast<const __m256i*>(from);
  for (size_t i = 0; i < lines * (kCacheLine / sizeof *y); ++i)
    _mm256_stream_si256(y + i, _mm256_loadu_si256(x + i));
#else
  std::memcpy(to, from, lines * kCacheLine);
#endif
}

void fence_lines() {
#ifdef __x86_64__
  _mm_sfence();
#endif
}

void copy_past_caches(void* to, const void* from, size_t bytes) {
  char* const y = static_cast<char*>(to);
  const char* const x = static_cast<const char*>(from);
  const size_t off = reinterpret_cast<uintptr_t>(to) % kCacheLine, head = off > 0 ? kCacheLine - off : 0;
  if (bytes < kFrom) return void(std::memcpy(y, x, bytes));
  const size_t lines = (bytes - head) / kCacheLine, tail = head + lines * kCacheLine;
  std::memcpy(y, x, head);
  in_shares(int64_t(lines), bytes >= kByTeam && omp_get_max_threads() > 1, [=](int64_t begin, int64_t end) {
    const size_t at = head + size_t(begin) * kCacheLine;
    put_lines(y + at, x + at, size_t(end - begin));
    fence_lines();
  });
  std::memcpy(y + tail, x + tail, bytes - tail);
}

}  // namespace skein
