// Thirty-two lanes on one thread: each has a stack, and waiting for the others switches stacks.
#include <cstdlib>
#include <vector>

#include "comm/sim/stack_switch.h"
#include "tests/emulated/launch.h"

namespace skein {
namespace {

constexpr int kLanes = 32;
constexpr size_t kStack = 64 << 10;

struct Lanes {
  std::vector<char> memory = std::vector<char>(kLanes * kStack);
  comm::sim::Continuation caller, lane[kLanes];
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

void enter(void* lanes) {
  Lanes& all = *static_cast<Lanes*>(lanes);
  for (;;) {
    (*all.body)();
    all.ended[all.current] = true;
    all.caller.resume(all.lane[all.current]);
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
  all.caller.resume(all.lane[me]);
  const int other = me ^ step;
  if (all.ended[other]) emulated::fault("a lane waits for one that has left its warp");
  const double theirs = all.given[other];
  all.caller.resume(all.lane[me]);
  return theirs;
}
float Warp::exchange(float v, int step) { return float(exchange(double(v), step)); }

namespace emulated {

void run_warp(const std::function<void()>& body) {
  Lanes& all = lanes();
  all.body = &body;
  for (int i = 0; i < kLanes; ++i) {
    all.ended[i] = false;
    all.lane[i].begin(all.memory.data() + size_t(i) * kStack, kStack, enter, &all);
  }
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < kLanes; ++i) {
      if (all.ended[i]) continue;
      all.current = i;
      all.lane[i].resume(all.caller);
      more = more || !all.ended[i];
    }
  }
}

}  // namespace emulated
}  // namespace skein
