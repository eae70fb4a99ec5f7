// Which instruction sets the CPU backend uses: the widest that the processor and its system
// offer, or SKEIN_CPU.
#pragma once
#include <string>

namespace skein {

enum class Isa { kAvx2, kAvx512, kAvx512Bf16, kAmx };  // each includes those before it
const char* name_of(Isa);                              // as SKEIN_CPU spells it

// What one processor has, with its system's permission to use it.
struct Processor {
  Isa widest = Isa::kAvx2;
};
const Processor& this_processor();

// The one that SKEIN_CPU=`wish` names, or the widest if it is empty. Throws BadOption if it is no name, or if
// the processor lacks it.
Isa choose_isa(const std::string& wish, const Processor&);
// The choice for this process, made once from the environment.
Isa chosen_isa();
bool isa_is_forced();  // by SKEIN_CPU

}  // namespace skein
