// Shapes, tensors and copies of their bytes.
#include "engine/tensor.h"

#include <atomic>
#include <cstring>
#include <ostream>

#include "engine/device/memory.h"
#include "engine/loops/copy_past_caches.h"
#include "engine/loops/moved_bytes.h"
#include "engine/seam.h"

namespace skein {

Shape::Shape(const int64_t* first, const int64_t* last) : rank_(int(last - first)) {
  CHECK(rank_ <= kMaxRank, "a tensor has at most six axes, asked for", rank_);
  for (int i = 0; i < rank_; ++i) {
    d_[i] = first[i];
    CHECK(d_[i] >= -1, "an extent cannot be negative:", d_[i]);
  }
}

std::ostream& operator<<(std::ostream& s, const Shape& shape) {
  s << '[';
  for (int i = 0; i < shape.rank(); ++i) s << (i ? "," : "") << shape[i];
  return s << ']';
}

namespace {
// Only reshape() accepts an extent of -1.
int64_t bytes_of(const Shape& shape, DType t) {
  for (int64_t d : shape) CHECK(d >= 0, "a tensor cannot have the shape", shape);
  return shape.volume() * size_of(t);
}
std::shared_ptr<Storage> memory_of(const Shape& shape, DType t, Allocator& from) {
  const int64_t bytes = bytes_of(shape, t);
  try {
    return std::make_shared<Storage>(bytes, from);
  } catch (const OutOfMemory& e) { throw e.of(text("a tensor ", t, ' ', shape)); }
}
}  // namespace

void Storage::note_use(bool by_host) const {
  if (by_host)
    CHECK(device_.kind != Device::kApart, "the host may not touch memory of", device_,
          "; copy it (Tensor::to), or work on it by vec.h");
  if (derived_) derived_->current = false;
}

Tensor::Tensor(Shape shape, DType t, Device d) : Tensor(shape, t, allocator(d)) {}

Tensor::Tensor(Shape shape, DType t, Allocator& from)
    : storage_(memory_of(shape, t, from)), id_(next_id()), shape_(shape), dtype_(t) {}

Tensor::Tensor(Shape shape, DType t, std::shared_ptr<Storage> storage)
    : storage_(std::move(storage)), id_(next_id()), shape_(shape), dtype_(t) {
  CHECK(bytes_of(shape, t) <= storage_->bytes, shape, t, "needs more than", storage_->bytes, "bytes");
}

uint64_t Tensor::next_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {
void clear_host(void* to, size_t bytes) {
  if (keeps_calls()) return keep([=] { std::memset(to, 0, bytes); });
  std::memset(to, 0, bytes);
}
}  // namespace

Tensor Tensor::zeros(Shape shape, DType t, Device d) {
  Tensor y(shape, t, d);
  if (d.is_cuda())
    cuda::clear(y.raw(), y.bytes(), current_stream(d).handle());
  else
    clear_host(y.address(), size_t(y.bytes()));
  return y;
}

Tensor Tensor::view(Shape shape, int64_t at) const {
  CHECK(at >= 0 && at * size_of(dtype_) + bytes_of(shape, dtype_) <= bytes(), "a view leaves its tensor:", at,
        shape, "of", shape_);
  Tensor y = *this;
  y.shape_ = shape;
  y.offset_ += at * size_of(dtype_);
  y.id_ = next_id();
  return y;
}

Tensor Tensor::unowned() const {
  if (!storage_) return {};
  return {shape_, dtype_, std::make_shared<Storage>(address(), bytes(), device(), nullptr)};
}

Tensor Tensor::clone() const {
  Tensor y(shape_, dtype_, device());
  copy_bytes(y, *this);
  return y;
}

Tensor Tensor::to(Device d) const {
  if (device() == d) return *this;
  Tensor y(shape_, dtype_, d);
  copy_bytes(y, *this);
  return y;
}

float Tensor::item() const {
  CHECK(size() == 1, "item() wants one element, not", shape_);
  refuse_recording("a number is read back to the host");
  const Tensor host = to(kCpu);
  if (device().is_cuda()) current_stream(device()).sync();
  return visit_float(dtype_, [&](auto t) { return float(*host.data<decltype(t)>()); });
}

namespace {
using HostCopy = void(void* to, const void* from, size_t bytes);
void copy_memory(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

void copy_by(HostCopy& copy, const Tensor& to, const Tensor& from) {
  CHECK(to.dtype() == from.dtype() && to.size() == from.size(), to.shape(), to.dtype(), from.shape(),
        from.dtype());
  if (to.size() == 0 || to.address() == from.address()) return;
  to.storage()->written();
  MovedBytes::count(2 * to.bytes());
  if (to.device().is_cuda() || from.device().is_cuda()) {
    const Device d = to.device().is_cuda() ? to.device() : from.device();
    if (to.device() != from.device() && records(d)) refuse_recording("a copy between two devices");
    return cuda::copy(to.address(), from.address(), to.bytes(), current_stream(d).handle());
  }
  void* const y = to.address();
  const void* const x = from.address();
  const size_t bytes = size_t(to.bytes());
  if (keeps_calls()) return keep([=, &copy] { copy(y, x, bytes); });
  copy(y, x, bytes);
}
}  // namespace

void copy_bytes(const Tensor& to, const Tensor& from) { copy_by(copy_memory, to, from); }
void copy_aside(const Tensor& to, const Tensor& from) { copy_by(copy_past_caches, to, from); }

}  // namespace skein
