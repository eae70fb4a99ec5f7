// Thirty-two lanes on one thread: each has a stack, and waiting for the others switches stacks.
#include <ucontext.h>

#include <cstdlib>
#include <vector>

#include "tests/emulated/launch.h"

namespace skein {
namespace {

constexpr int kLanes = 32;
constexpr size_t kStack = 64 << 10;

#if defined(__x86_64__)
// Saves the registers that the calling convention preserves, and continues where `to` stopped. swapcontext()
// would also ask the kernel for the signal mask, which takes fifty times as long.
extern "C" void skein_switch_stacks(void** from, void* to);
asm(R"(
.text
.type skein_switch_stacks,@function
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
)");
struct Place {
  void* stack = nullptr;
  void go_on_at(Place& to) { skein_switch_stacks(&stack, to.stack); }
  void begin(char* memory, void (*entry)()) {
    void** top = reinterpret_cast<void**>(memory + kStack);
    // The address to which `entry` would return, which it never does; it aligns the stack as after a call.
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    stack = top;
  }
};
#else
struct Place {
  ucontext_t context;
  void go_on_at(Place& to) { swapcontext(&context, &to.context); }
  void begin(char* memory, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = memory;
    context.uc_stack.ss_size = kStack;
    makecontext(&context, entry, 0);
  }
};
#endif

struct Lanes {
  std::vector<char> memory = std::vector<char>(kLanes * kStack);
  Place caller, lane[kLanes];
  bool ended[kLanes] = {};
  double given[kLanes] = {};
  int current = 0;
  const std::function<void()>* body = nullptr;
};
// Never freed, because threads of OpenMP's team may run after any destructor.
Lanes& lanes() {
  thread_local Lanes* const mine = new Lanes;
  return *mine;
}

void entry() {
  Lanes& all = lanes();
  for (;;) {
    (*all.body)();
    all.ended[all.current] = true;
    all.lane[all.current].go_on_at(all.caller);
  }
}

}  // namespace

int Warp::lane() const { return lanes().current; }

// Each lane stores its number and waits until all have. The second pause keeps numbers from being overwritten
// before all lanes have read them.
double Warp::exchange(double v, int step) {
  Lanes& all = lanes();
  const int me = all.current;
  all.given[me] = v;
  all.lane[me].go_on_at(all.caller);
  const int other = me ^ step;
  if (all.ended[other]) emulated::fault("a lane waits for one that has left its warp");
  const double theirs = all.given[other];
  all.lane[me].go_on_at(all.caller);
  return theirs;
}
float Warp::exchange(float v, int step) { return float(exchange(double(v), step)); }

namespace emulated {

void run_warp(const std::function<void()>& body) {
  Lanes& all = lanes();
  all.body = &body;
  for (int i = 0; i < kLanes; ++i) {
    all.ended[i] = false;
    all.lane[i].begin(all.memory.data() + size_t(i) * kStack, entry);
  }
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < kLanes; ++i) {
      if (all.ended[i]) continue;
      all.current = i;
      all.caller.go_on_at(all.lane[i]);
      more = more || !all.ended[i];
    }
  }
}

}  // namespace emulated
}  // namespace skein
