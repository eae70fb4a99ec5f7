// Slots: numbers in device memory that the host writes before a step, so that recorded kernels read new
// ones at every replay.
#pragma once
#include <type_traits>

#include "engine/tensor.h"

namespace skein {

// to[0, bytes) <- from, of at most 128 bytes. The values travel with the launch: `from` may die at once and
// the host does not wait. Ordered in the current stream. Throws Error inside a recording, because a replay
// would repeat the old values.
void write_slot(const Tensor& to, const void* from, int64_t bytes);

// One T of plain data on a device. Written and read in the order of the current stream.
template <class T>
class Slot {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 128);

 public:
  explicit Slot(Device d) : at_(Tensor::zeros({int64_t(sizeof(T))}, kU8, d)) {}
  void write(const T& value) { write_slot(at_, &value, sizeof(T)); }
  const T* get() const { return static_cast<const T*>(at_.raw()); }  // a device's address

 private:
  Tensor at_;
};

}  // namespace skein
