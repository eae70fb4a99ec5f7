// ucontext, and what the C++ runtime keeps for each thread.
#include "comm/sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "engine/base.h"

namespace skein::comm::sim {
namespace {

constexpr size_t kStack = 256 << 10,
                 kGuard = 4 << 10;  // bytes; one that runs over its stack ends the program

void* new_stack() {
  void* p = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p == MAP_FAILED || mprotect(p, kGuard, PROT_NONE) != 0)
    throw Error(text("there is no memory for the stack of another simulated worker: ", std::strerror(errno),
                     "; simulate fewer, or raise vm.max_map_count"));
  return p;
}

}  // namespace

Fiber::Fiber(std::function<void()> main) : main_(std::move(main)), stack_(new_stack()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = static_cast<char*>(stack_) + kGuard;
  context_.uc_stack.ss_size = kStack;
  context_.uc_link = nullptr;
  const uint64_t me = reinterpret_cast<uint64_t>(this);  // makecontext() passes only int
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, unsigned(me >> 32), unsigned(me));
}

Fiber::~Fiber() {
  if (stack_) munmap(stack_, kGuard + kStack);
}

void Fiber::enter(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>(uint64_t(high) << 32 | low)->main_();
}

void Fiber::resume(Fiber& running) {
  void* const now = abi::__cxa_get_globals();
  std::memcpy(&running.exceptions_, now, sizeof(Exceptions));
  std::memcpy(now, &exceptions_, sizeof(Exceptions));
  swapcontext(&running.context_, &context_);
}

}  // namespace skein::comm::sim
