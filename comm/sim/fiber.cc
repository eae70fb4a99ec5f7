// A stack, where it goes on, and what the C++ runtime keeps for each thread.
#include "comm/sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base.h"

namespace skein::comm::sim {
namespace {

constexpr size_t kStack = 256 << 10,
                 kGuard = 4 << 10;  // bytes; one that runs over its stack ends the program

void* new_stack() {
  void* p = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p != MAP_FAILED && mprotect(p, kGuard, PROT_NONE) == 0) return p;
  const int why = errno;
  if (p != MAP_FAILED) munmap(p, kGuard + kStack);
  throw Error(text("there is no memory for the stack of another simulated worker: ", std::strerror(why),
                   "; simulate fewer, or raise vm.max_map_count (or ulimit -v)"));
}

}  // namespace

Fiber::Fiber(std::function<void()> main) : main_(std::move(main)), stack_(new_stack()) {
  continuation_.begin(static_cast<char*>(stack_) + kGuard, kStack, &Fiber::enter, this);
}

Fiber::~Fiber() {
  if (stack_) munmap(stack_, kGuard + kStack);
}

void Fiber::enter(void* fiber) { static_cast<Fiber*>(fiber)->main_(); }

void Fiber::resume(Fiber& running) {
  void* const now = abi::__cxa_get_globals();
  std::memcpy(&running.exceptions_, now, sizeof(Exceptions));
  std::memcpy(now, &exceptions_, sizeof(Exceptions));
  running.moved_ = std::exchange(MovedBytes::current(), moved_);
  continuation_.resume(running.continuation_);
}

}  // namespace skein::comm::sim
