// The program `fuzz`: fuzz HARNESS [libFuzzer's options] [corpus...]. libFuzzer has main().
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz.h"

namespace {

constexpr const char* kChosen = "SKEIN_FUZZ_HARNESS";  // for the processes that -fork and -merge start

const skein::fuzz::Harness& chosen() {
  static const skein::fuzz::Harness& h = *skein::fuzz::find_harness(std::getenv(kChosen));
  return h;
}

}  // namespace

// Secrets are on pages of their own, which is most of what connections cost here. Here they are as other
// memory is, every byte of which the sanitizer watches.
extern "C" void* sodium_malloc(size_t n) { return std::malloc(n); }
extern "C" void sodium_free(void* p) { std::free(p); }
extern "C" int sodium_mprotect_readonly(void*) { return 0; }

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc > 1 && (*argv)[1][0] != '-') {
    ::setenv(kChosen, (*argv)[1], 1);
    (*argv)[1] = (*argv)[0];
    ++*argv, --*argc;
  }
  const char* name = std::getenv(kChosen);
  if (!name || !skein::fuzz::find_harness(name)) {
    std::fprintf(stderr, "usage: fuzz HARNESS [options of libFuzzer] [corpus...]; HARNESS is one of\n");
    for (const skein::fuzz::Harness& h : skein::fuzz::harnesses())
      std::fprintf(stderr, "  %-16s %s\n", h.name, h.bytes);
    std::exit(2);
  }
  skein::fuzz::scratch();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen().run(skein::fuzz::Input({data, size}));
  return 0;
}
