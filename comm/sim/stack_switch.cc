// The registers that a function must preserve are pushed on one stack and popped from the other. The modes of
// rounding are not among them: they are the same for all threads of control.
#include "comm/sim/stack_switch.h"

#include <cstdint>

namespace skein::comm::sim {

void Continuation::begin(void* stack, size_t bytes, void (*main)(void*), void* argument) {
  main_ = main, argument_ = argument;
  sanitized_.begin(stack, bytes);
  prepare(stack, bytes);
}

void Continuation::enter(void* begun) {
  SanitizedStack::arrive();
  const Continuation& c = *static_cast<const Continuation*>(begun);
  c.main_(c.argument_);
}

void Continuation::resume(Continuation& running) {
  running.sanitized_.leave_for(sanitized_);
  change_from(running);
  SanitizedStack::arrive();
}

#if SKEIN_OWN_SWITCH

// System V ABI for x86-64, 3.2.1: rbx, rbp and r12 to r15 are the caller's. A new stack begins in
// skein_enter_stack, which calls r12 with r13; there is nothing to return to, and unwinding ends there.
__asm__(R"(
  .pushsection .text
  .hidden skein_switch_stacks
  .globl skein_switch_stacks
  .type skein_switch_stacks, @function
skein_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size skein_switch_stacks, . - skein_switch_stacks
  .hidden skein_enter_stack
  .globl skein_enter_stack
  .type skein_enter_stack, @function
skein_enter_stack:
  .cfi_startproc
  .cfi_undefined rip
  movq %r13, %rdi
  call *%r12
  ud2
  .cfi_endproc
  .size skein_enter_stack, . - skein_enter_stack
  .popsection
)");
extern "C" void skein_switch_stacks(void** save, void* load);
extern "C" void skein_enter_stack();

void Continuation::prepare(void* stack, size_t bytes) {
  const uintptr_t end = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t(15);
  uintptr_t* const top =
      reinterpret_cast<uintptr_t*>(end) - 9;  // after its seven words rsp is a multiple of 16
  const uintptr_t words[] = {0,
                             0,
                             reinterpret_cast<uintptr_t>(this),
                             reinterpret_cast<uintptr_t>(&enter),
                             0,
                             0,
                             reinterpret_cast<uintptr_t>(&skein_enter_stack)};  // r15 r14 r13 r12 rbx rbp rip
  for (size_t i = 0; i < 7; ++i) top[i] = words[i];
  top_ = top;
}

void Continuation::change_from(Continuation& running) { skein_switch_stacks(&running.top_, top_); }

#else

namespace {
// makecontext() passes only int.
void enter_from_halves(unsigned enter_high, unsigned enter_low, unsigned high, unsigned low) {
  const auto whole = [](unsigned h, unsigned l) { return uintptr_t(uint64_t(h) << 32 | l); };
  reinterpret_cast<void (*)(void*)>(whole(enter_high, enter_low))(reinterpret_cast<void*>(whole(high, low)));
}
}  // namespace

void Continuation::prepare(void* stack, size_t bytes) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  const uint64_t f = reinterpret_cast<uintptr_t>(&enter), a = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&enter_from_halves), 4, unsigned(f >> 32), unsigned(f),
              unsigned(a >> 32), unsigned(a));
}

void Continuation::change_from(Continuation& running) { swapcontext(&running.context_, &context_); }

#endif

}  // namespace skein::comm::sim
