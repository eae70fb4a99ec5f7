// cuDNN's functions, looked up when first needed; its statuses as exceptions; its descriptors as values.
#pragma once
#include <cudnn.h>

#include <vector>

#include "engine/cuda/library.h"

namespace skein::cuda {

// clang-format off
#define SKEIN_CUDNN_FUNCTIONS(ROW) \
  ROW(cudnnGetVersion) \
  ROW(cudnnGetErrorString) \
  ROW(cudnnGetLastErrorString) \
  ROW(cudnnCreate) \
  ROW(cudnnDestroy) \
  ROW(cudnnSetStream) \
  ROW(cudnnBackendCreateDescriptor) \
  ROW(cudnnBackendDestroyDescriptor) \
  ROW(cudnnBackendSetAttribute) \
  ROW(cudnnBackendGetAttribute) \
  ROW(cudnnBackendFinalize) \
  ROW(cudnnBackendExecute)
// clang-format on

struct Cudnn {
  SKEIN_CUDNN_FUNCTIONS(SKEIN_MEMBER)
};
// Opens the library once. Throws Error that says what to install, or that it is older than 9.8.
const Cudnn& cudnn();
// Throws Error with cuDNN's own words if the status is a failure.
void check(cudnnStatus_t, const char* what);

// An owned descriptor of cuDNN's graph API. set() and get() throw Error; finalize() can be asked instead.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t);
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& o) noexcept : d_(o.d_) { o.d_ = nullptr; }
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(d_, o.d_);
    return *this;
  }
  explicit operator bool() const { return d_ != nullptr; }
  cudnnBackendDescriptor_t raw() const { return d_; }

  void set(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t count, const void*);
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& v) {
    set(name, CUDNN_TYPE_INT64, int64_t(v.size()), v.data());
  }
  void set(cudnnBackendAttributeName_t name, int64_t v) { set(name, CUDNN_TYPE_INT64, 1, &v); }
  void set(cudnnBackendAttributeName_t name, float v) { set(name, CUDNN_TYPE_FLOAT, 1, &v); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t v) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &v); }
  void set(cudnnBackendAttributeName_t name, const Descriptor& v) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v.d_);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>&);
  // Returns how many elements there are and, if `to` is given, copies up to `room` of them.
  int64_t get(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t room, void* to) const;
  void finalize(const char* what) { check(try_finalize(), what); }
  cudnnStatus_t try_finalize();

 private:
  void reset() noexcept;
  cudnnBackendDescriptor_t d_ = nullptr;
};

// The device that plans are made for: a real one, or one described by cuDNN's JSON, for which plans can be
// built, but not run, without any device.
Descriptor device_properties(int index);
Descriptor device_properties(const std::string& json);
std::string json_of(const Descriptor& device_properties);

}  // namespace skein::cuda
