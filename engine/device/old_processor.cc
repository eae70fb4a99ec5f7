// Compiled for every x86-64 processor, so nothing here may use the standard library: its code is shared with
// files that are compiled for AVX2.
#include "engine/device/old_processor.h"

#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>

namespace skein {

unsigned saved_registers() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return a;
}

namespace {

bool has_avx2() {
  constexpr unsigned kOne = bit_FMA | bit_MOVBE | bit_F16C | bit_AVX, kSeven = bit_AVX2 | bit_BMI | bit_BMI2;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kOne) != kOne) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & kSeven) != kSeven) return false;
  return (saved_registers() & 6) == 6;
}

// 101 is the first priority that programs may use: before their static initializers, which use AVX2 already.
__attribute__((constructor(101))) void refuse_old_processors() {
  if (has_avx2()) return;
  static const char sentence[] =
      "skein: this processor, or the virtual machine's view of it, lacks AVX2 and FMA, which Skein needs "
      "(Intel from "
      "Haswell, AMD from Zen on)\n";
  if (write(2, sentence, sizeof sentence - 1) < 0) _exit(1);
  _exit(1);
}

}  // namespace
}  // namespace skein
#endif
