// The write of a slot: a kernel whose arguments are the bytes.
#include "engine/vectors/slot.h"

#include <cstring>

#include "engine/loops/launch.h"

namespace skein {
namespace {

constexpr int64_t kMost = 128;

struct Write {
  // what follows them is data, even if it looks like an address
  enum : size_t { kAddresses = sizeof(void*) };
  uint8_t* to;
  uint8_t bytes[kMost];
  HD void operator()(int64_t i) const { to[i] = bytes[i]; }
};

}  // namespace

void write_slot(const Tensor& to, const void* from, int64_t bytes) {
  CHECK(bytes <= kMost && bytes <= to.bytes(), bytes, to.bytes());
  CHECK(!records(to.device()),
        "a slot is written before a recording, or it would hold the same at every replay");
  Write w{static_cast<uint8_t*>(to.raw()), {}};
  std::memcpy(w.bytes, from, size_t(bytes));
  for_each(to.device(), bytes, w);
}

}  // namespace skein
