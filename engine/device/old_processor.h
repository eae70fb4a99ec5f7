// Ends the program with one sentence, before any of its other code runs, where the processor lacks AVX2.
#pragma once

namespace skein {

// The registers that the system saves: XCR0, or 0 where it cannot be asked. Using it links the check
// into a program.
unsigned saved_registers();

}  // namespace skein
