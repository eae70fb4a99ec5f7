// Fiber: a function on a stack of its own, which gives way to others of the same thread and is
// resumed by them.
#pragma once
#include <cstddef>
#include <functional>

#include "comm/sim/stack_switch.h"
#include "engine/loops/moved_bytes.h"

namespace skein::comm::sim {

// Changing from one to another costs a hundredth of what a thread of the machine costs. Exceptions may
// be thrown and handled in each of them, whatever the others are doing, and each counts its MovedBytes or, as
// long as it has none, those of the fiber that made it, which must outlive it then; other thread_local state
// is the same for all.
class Fiber {
 public:
  Fiber() = default;  // the stack of the calling thread, to come back to
  // `main` begins when it is first resumed, and must not return: it ends by resuming another for good. Throws
  // Error if there is no memory for its stack, which counts only as far as it is used.
  explicit Fiber(std::function<void()> main);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  // Called in `running`: continues this fiber, and returns when `running` is resumed.
  void resume(Fiber& running);

 private:
  struct Exceptions {  // those that this fiber is handling: __cxa_eh_globals of the C++ ABI
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static void enter(void* fiber);
  std::function<void()> main_;
  void* stack_ = nullptr;
  Continuation continuation_;
  Exceptions exceptions_;
  MovedBytes* moved_ = MovedBytes::current();
};

}  // namespace skein::comm::sim
