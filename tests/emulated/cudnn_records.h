// Records what cuDNN is told, descriptor by descriptor, while the real library is told the same.
#pragma once
#include <cudnn.h>

#include <map>
#include <memory>
#include <vector>

namespace skein::emulated {

struct Record {
  struct Attribute {
    std::vector<char> bytes;                        // for plain values
    std::vector<std::shared_ptr<Record>> children;  // for descriptors
  };
  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;

  bool has(cudnnBackendAttributeName_t name) const { return attributes.count(name) > 0; }
  // Ends the program if the attribute was never set.
  template <class V>
  std::vector<V> list(cudnnBackendAttributeName_t name) const {
    const std::vector<char>& bytes = at(name).bytes;
    const V* first = reinterpret_cast<const V*>(bytes.data());
    return std::vector<V>(first, first + bytes.size() / sizeof(V));
  }
  template <class V>
  V one(cudnnBackendAttributeName_t name) const {
    return list<V>(name).at(0);
  }
  const Record& child(cudnnBackendAttributeName_t name) const { return *at(name).children.at(0); }
  const std::vector<std::shared_ptr<Record>>& children(cudnnBackendAttributeName_t name) const {
    return at(name).children;
  }

 private:
  const Attribute& at(cudnnBackendAttributeName_t) const;
};

// Executes an operation graph on the calling thread, while the device's memory is open. `data` is the memory
// of each tensor that is not virtual, by its id.
void obey(const Record& graph, const std::map<int64_t, void*>& data);
// The ids of the tensors that must have memory, and the bytes of each.
std::map<int64_t, size_t> memory_of(const Record& graph);

}  // namespace skein::emulated
