// cuDNN by dlopen, and the few lines that make its descriptors values.
#include "engine/cuda/cudnn_library.h"

#include <utility>

namespace skein::cuda {
namespace {

constexpr const char* kName = "cuDNN";

Cudnn open() {
  void* library = open_library(kName, "libcudnn.so.9", "cudnn9-cuda-13");
  Cudnn c;
#define ROW(name) c.name = reinterpret_cast<decltype(c.name)>(find_function(library, kName, #name, "9.8"));
  SKEIN_CUDNN_FUNCTIONS(ROW)
#undef ROW
  const size_t version = c.cudnnGetVersion();
  if (version < 90800)
    throw Error(
        text("cuDNN ", version / 10000, '.', version / 100 % 100,
             " is too old: version 9.8 or later is needed; update it (Debian, Ubuntu: cudnn9-cuda-13)"));
  return c;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn c = open();
  return c;
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char more[1024] = "";
  cudnn().cudnnGetLastErrorString(more, sizeof more);
  throw Error(
      text("cuDNN: ", what, " failed: ", cudnn().cudnnGetErrorString(status), *more ? ": " : "", more));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnn().cudnnBackendCreateDescriptor(type, &d_), "cudnnBackendCreateDescriptor");
}
void Descriptor::reset() noexcept {
  if (d_) cudnn().cudnnBackendDestroyDescriptor(d_);
  d_ = nullptr;
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  check(cudnn().cudnnBackendSetAttribute(d_, name, type, count, values), "cudnnBackendSetAttribute");
}
void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& list) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* d : list) raw.push_back(d->d_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(raw.size()), raw.data());
}
int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
                        void* to) const {
  int64_t count = 0;
  check(cudnn().cudnnBackendGetAttribute(d_, name, type, room, &count, to), "cudnnBackendGetAttribute");
  return count;
}
cudnnStatus_t Descriptor::try_finalize() { return cudnn().cudnnBackendFinalize(d_); }

Descriptor device_properties(int index) {
  Descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const int32_t id = index;
  d.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
  d.finalize("describing the device");
  return d;
}
Descriptor device_properties(const std::string& json) {
  Descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(json.size()) + 1, json.c_str());
  d.finalize("describing a device by JSON");
  return d;
}
std::string json_of(const Descriptor& d) {
  std::string json(size_t(d.get(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, nullptr)),
                   '\0');
  d.get(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(json.size()), json.data());
  return json.c_str();  // up to the terminating zero
}

}  // namespace skein::cuda
