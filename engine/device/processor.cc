#include "engine/device/processor.h"

#include <cstdlib>

#include "engine/base.h"
#include "engine/device/old_processor.h"
#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace skein {
namespace {

constexpr const char* kNames[] = {"avx2", "avx512", "avx512bf16", "amx"};

std::string wished() {
  const char* const said = std::getenv("SKEIN_CPU");
  return said ? said : "";
}

#ifdef __x86_64__
constexpr unsigned kAvx512Registers = 0xE6, kTiles = 0x60000;  // what the system must save, in XCR0

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Leaf(unsigned leaf, unsigned sub) { __get_cpuid_count(leaf, sub, &a, &b, &c, &d); }
};
bool all(unsigned have, unsigned want) { return (have & want) == want; }

// Linux saves tiles for those processes alone that ask for it (arch_prctl(2), ARCH_REQ_XCOMP_PERM).
bool tiles_are_granted() {
  constexpr long kAsk = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kAsk, kTileData) == 0;
}

Isa widest_of(unsigned saved) {
  const Leaf seven(7, 0), more(7, 1);
  constexpr unsigned kFoundation = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL | bit_AVX512CD;
  constexpr unsigned kBf16 = 1 << 5, kAmx = 1 << 22 | 1 << 24;  // AMX_BF16, AMX_TILE
  if (!all(seven.b, kFoundation) || !all(saved, kAvx512Registers)) return Isa::kAvx2;
  if (!all(more.a, kBf16)) return Isa::kAvx512;
  return all(seven.d, kAmx) && all(saved, kTiles) && tiles_are_granted() ? Isa::kAmx : Isa::kAvx512Bf16;
}

bool is_of_intel() {
  const Leaf vendor(0, 0);
  return vendor.b == signature_INTEL_ebx && vendor.c == signature_INTEL_ecx &&
         vendor.d == signature_INTEL_edx;
}

Processor look() { return {widest_of(saved_registers()), is_of_intel()}; }
#else
Processor look() { return {}; }
#endif

}  // namespace

const char* name_of(Isa isa) { return kNames[int(isa)]; }

const Processor& this_processor() {
  static const Processor p = look();
  return p;
}

Isa choose_isa(const std::string& wish, const Processor& p) {
  if (wish.empty()) return p.of_intel && p.widest == Isa::kAvx512Bf16 ? Isa::kAvx512 : p.widest;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
    if (wish != name_of(isa)) continue;
    if (isa <= p.widest) return isa;
    throw BadOption(text("SKEIN_CPU=", wish,
                         ": this processor, or its operating system, lacks it; the widest here is ",
                         name_of(p.widest), "; without SKEIN_CPU it is ", name_of(choose_isa("", p))));
  }
  throw BadOption(text("SKEIN_CPU=", wish, ": is none of avx2, avx512, avx512bf16, amx"));
}

Isa chosen_isa() {
  static const Isa isa = choose_isa(wished(), this_processor());
  return isa;
}

bool isa_is_forced() { return !wished().empty(); }

bool multiplies_pairs() {
  const Isa isa = chosen_isa();
  return isa == Isa::kAvx512Bf16 || (isa == Isa::kAmx && !this_processor().of_intel);
}

}  // namespace skein
