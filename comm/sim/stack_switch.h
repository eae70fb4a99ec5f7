// Continuation: where a thread of control goes on that has given way to another one: its stack and registers.
#pragma once
#include <cstddef>

#include "comm/sim/sanitized_stack.h"

// ucontext also saves the mask of signals, by a call of the system at each change, which costs several times
// as much as all the rest. It is used where the registers are others than below, and where returns are
// checked against a second stack (shadow stacks).
#if defined(__x86_64__) && !(defined(__CET__) && (__CET__ & 2))
#define SKEIN_OWN_SWITCH 1
#else
#define SKEIN_OWN_SWITCH 0
#include <ucontext.h>
#endif

namespace skein::comm::sim {

class Continuation {
 public:
  Continuation() = default;  // of the calling thread, once it has given way
  Continuation(const Continuation&) = delete;
  // It will begin with main(argument), which must not return, on this stack.
  void begin(void* stack, size_t bytes, void (*main)(void*), void* argument);
  // The caller goes on where `running` is resumed, and this goes on now.
  void resume(Continuation& running);

 private:
  static void enter(void* begun);
  void prepare(void* stack, size_t bytes);
  void change_from(Continuation& running);
  void (*main_)(void*) = nullptr;
  void* argument_ = nullptr;
  [[no_unique_address]] SanitizedStack sanitized_;
#if SKEIN_OWN_SWITCH
  void* top_ = nullptr;  // of its stack, on which its registers lie
#else
  ucontext_t context_{};
#endif
};

}  // namespace skein::comm::sim
