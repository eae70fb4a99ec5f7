// A Tensor is a typed window (shape, offset) on shared Storage. Copying one copies the window, not the data.
#pragma once
#include <array>
#include <initializer_list>
#include <vector>

#include "engine/device/recording.h"
#include "engine/dtype.h"
#include "engine/storage.h"

namespace skein {

// Up to six extents, outermost first. Images are N H W C, convolution weights O H W I. An extent of -1 is
// computed by reshape(); no tensor has one.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> d) : Shape(d.begin(), d.end()) {}
  explicit Shape(const std::vector<int64_t>& d) : Shape(d.data(), d.data() + d.size()) {}
  Shape(const int64_t* first, const int64_t* last);
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return d_[i]; }
  int64_t& operator[](int i) { return d_[i]; }
  const int64_t* begin() const { return d_.data(); }
  const int64_t* end() const { return d_.data() + rank_; }
  int64_t volume() const {  // 1 for rank 0
    int64_t n = 1;
    for (int64_t d : *this) n *= d;
    return n;
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> d_{};
  int rank_ = 0;
};
std::ostream& operator<<(std::ostream&, const Shape&);

class Tensor {
 public:
  Tensor() = default;                                   // empty: false, no shape, no storage
  explicit Tensor(Shape, DType = kF32, Device = kCpu);  // uninitialized
  Tensor(Shape, DType, Allocator&);                     // uninitialized, from this allocator
  Tensor(Shape, DType, std::shared_ptr<Storage>);       // a window on the whole storage
  static Tensor zeros(Shape, DType = kF32, Device = kCpu);
  template <class T>
  static Tensor of(Shape s, const std::vector<T>& values);  // on the CPU; sizes must agree

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const {  // negative counts from the end
    const int j = i < 0 ? i + rank() : i;
    CHECK(j >= 0 && j < rank(), i, shape_);
    return shape_[j];
  }
  int64_t size() const { return shape_.volume(); }
  int64_t bytes() const { return size() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : kCpu; }

  // The elements, which the host may read and write and a kernel may use. Throws Error if T is
  // not the tensor's type.
  template <class T>
  T* data() const {
    check<T>();
    return static_cast<T*>(raw());
  }
  void* raw() const {
    storage_->used_by_host();
    return address();
  }
  // The elements for functions that run on the tensor's own device: in() for reading, out() for writing.
  template <class T>
  const T* in() const {
    check<T>();
    return static_cast<const T*>(address());
  }
  template <class T>
  T* out() const {
    check<T>();
    storage_->written();
    return static_cast<T*>(address());
  }
  void* address() const { return static_cast<char*>(storage_->data) + offset_; }  // for reading only
  int64_t offset() const { return offset_ / size_of(dtype_); }  // in elements, from the storage's start
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  // A window of the same storage that begins `at` elements in. To the tape it is a new value.
  Tensor view(Shape, int64_t at = 0) const;
  Tensor unowned() const;   // the same window without ownership of its memory
  Tensor clone() const;     // a copy in new memory on the same device
  Tensor to(Device) const;  // this tensor if it is there already, else a copy made on current_stream
  float item() const;       // the value of a tensor of one element, read back to the host; waits for it

  // Identifies the value on the tape: copies share it, views do not. It is never an address.
  uint64_t id() const { return id_; }

 private:
  template <class T>
  void check() const {
    CHECK(dtype_of<T>::value == dtype_, "asked for", dtype_of<T>::value, "of a tensor of", dtype_);
  }
  static uint64_t next_id();
  std::shared_ptr<Storage> storage_;
  uint64_t id_ = 0;
  int64_t offset_ = 0;  // bytes
  Shape shape_;
  DType dtype_ = kF32;
};

// Copies all bytes of `from` into `to` (same type and size, any two devices) on the current stream.
void copy_bytes(const Tensor& to, const Tensor& from);
// The same for a copy that will not be read soon: on the host it displaces nothing from the caches.
void copy_aside(const Tensor& to, const Tensor& from);

template <class T>
Tensor Tensor::of(Shape s, const std::vector<T>& values) {
  if (keeps_calls()) refuse_recording("the host writes values into memory");
  Tensor t(s, dtype_of<T>::value);
  CHECK(int64_t(values.size()) == t.size(), values.size(), s);
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
  return t;
}

}  // namespace skein
