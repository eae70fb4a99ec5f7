// Which instruction sets the CPU backend uses: the fastest that the processor and its system
// offer, or SKEIN_CPU.
#pragma once
#include <string>

namespace skein {

enum class Isa { kAvx2, kAvx512, kAvx512Bf16, kAmx };  // each includes those before it
const char* name_of(Isa);                              // as SKEIN_CPU spells it

// What one processor has, with its system's permission to use it.
struct Processor {
  Isa widest = Isa::kAvx2;
  // There products of bf16 pairs (vdpbf16ps) are half as many a second as those of f32: 89 and 179 GFLOP/s,
  // measured on one of model 207.
  bool of_intel = false;
};
const Processor& this_processor();

// The one that SKEIN_CPU=`wish` names, or the fastest if it is empty: the widest, but not slow pairs without
// tiles. Throws BadOption if it is no name, or if the processor lacks it.
Isa choose_isa(const std::string& wish, const Processor&);
// The choice for this process, made once from the environment.
Isa chosen_isa();
bool isa_is_forced();  // by SKEIN_CPU
// Whether bf16 is multiplied in pairs where it is not by tiles.
bool multiplies_pairs();

}  // namespace skein
