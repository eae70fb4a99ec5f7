// cuDNN with the real library for everything that needs no device: graphs, heuristics and plans come from it,
// for a described H200; handles and executions are ours.
#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>

#include "tests/emulated/cudnn_records.h"
#include "tests/emulated/gpu.h"
#include "tests/emulated/libraries.h"

namespace skein::emulated {
namespace {

void* real = nullptr;
template <class F>
F* real_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(real, name));
}
#define REAL(name) real_function<decltype(name)>(#name)

std::mutex mutex;
std::map<cudnnBackendDescriptor_t, std::shared_ptr<Record>>& records() {
  static auto& all = *new std::map<cudnnBackendDescriptor_t, std::shared_ptr<Record>>;
  return all;
}

size_t size_of(cudnnBackendAttributeType_t t) {
  switch (t) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
      return 8;
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:  // floats, 32-bit integers and all enumerations
      return 4;
  }
}

cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  const cudnnStatus_t status = REAL(cudnnBackendCreateDescriptor)(type, d);
  const std::lock_guard lock(mutex);
  if (status == CUDNN_STATUS_SUCCESS) records()[*d] = std::make_shared<Record>(Record{type, {}});
  return status;
}
cudnnStatus_t destroy(cudnnBackendDescriptor_t d) {
  {
    const std::lock_guard lock(mutex);
    records().erase(d);
  }
  return REAL(cudnnBackendDestroyDescriptor)(d);
}

// Every device is the H200 that the plans' tests describe by a file.
cudnnStatus_t describe_device(cudnnBackendDescriptor_t d) {
  std::ifstream in(SKEIN_SOURCE_DIR "/tests/cuda/h200.json");
  std::stringstream json;
  json << in.rdbuf();
  const std::string said = json.str();
  return REAL(cudnnBackendSetAttribute)(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                        int64_t(said.size()) + 1, said.c_str());
}

cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (name == CUDNN_ATTR_DEVICEPROP_DEVICE_ID) return describe_device(d);
  const cudnnStatus_t status = REAL(cudnnBackendSetAttribute)(d, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const std::lock_guard lock(mutex);
  Record::Attribute a;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i)
      a.children.push_back(records().at(static_cast<const cudnnBackendDescriptor_t*>(values)[i]));
  } else {
    const char* first = static_cast<const char*>(values);
    a.bytes.assign(first, first + size_t(count) * size_of(type));
  }
  records().at(d)->attributes[name] = std::move(a);
  return status;
}

// Configurations from heuristics belong to the graph that the heuristics were asked about.
cudnnStatus_t get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  const cudnnStatus_t status = REAL(cudnnBackendGetAttribute)(d, name, type, room, count, values);
  if (status != CUDNN_STATUS_SUCCESS || name != CUDNN_ATTR_ENGINEHEUR_RESULTS || !values) return status;
  const std::lock_guard lock(mutex);
  const auto& asked = records().at(d)->attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  for (int64_t i = 0; i < std::min(room, *count); ++i)
    records()
        .at(static_cast<cudnnBackendDescriptor_t*>(values)[i])
        ->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = asked;
  return status;
}

struct Handle {
  cudaStream_t stream = nullptr;
};
cudnnStatus_t create_handle(cudnnHandle_t* h) {
  *h = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy_handle(cudnnHandle_t h) {
  delete reinterpret_cast<Handle*>(h);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_stream(cudnnHandle_t h, cudaStream_t s) {
  reinterpret_cast<Handle*>(h)->stream = s;
  return CUDNN_STATUS_SUCCESS;
}

std::shared_ptr<Record> graph_of(const Record& plan) {
  const Record& configuration = plan.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Record& engine = configuration.has(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
                             ? configuration
                             : configuration.child(CUDNN_ATTR_ENGINECFG_ENGINE);
  return engine.children(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).at(0);
}

cudnnStatus_t execute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  int64_t room = 0, count = 0;
  REAL(cudnnBackendGetAttribute)
  (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &room);
  const std::lock_guard lock(mutex);
  const Record& given = *records().at(pack);
  const std::shared_ptr<Record> graph = graph_of(*records().at(plan));
  const auto ids = given.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = given.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (ids.size() != pointers.size()) fault("as many ids as tensors are wanted by cuDNN");
  if (room > 0 && !reachable(given.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), size_t(room)))
    fault("cuDNN gets too little memory to work in");
  std::map<int64_t, void*> data;
  for (size_t i = 0; i < ids.size(); ++i) data[ids[i]] = pointers[i];
  for (const auto& [id, bytes] : memory_of(*graph))
    if (!data.count(id) || !reachable(data[id], bytes))
      fault(("cuDNN's tensor " + std::to_string(id) + " has no memory of the device, or too little").c_str());
  enqueue(reinterpret_cast<Handle*>(h)->stream, "cudnnBackendExecute", [graph, data] { obey(*graph, data); });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

const Record::Attribute& Record::at(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  if (found == attributes.end())
    fault(("attribute " + std::to_string(int(name)) + " of a descriptor of type " +
           std::to_string(int(type)) + " was never set")
              .c_str());
  return found->second;
}

void* cudnn_function(void* library, const char* name) {
  const auto is = [&](const char* other) { return strcmp(name, other) == 0; };
  if (strncmp(name, "cudnn", 5) == 0) real = library;
  if (is("cudnnCreate")) return reinterpret_cast<void*>(create_handle);
  if (is("cudnnDestroy")) return reinterpret_cast<void*>(destroy_handle);
  if (is("cudnnSetStream")) return reinterpret_cast<void*>(set_stream);
  if (is("cudnnBackendCreateDescriptor")) return reinterpret_cast<void*>(create);
  if (is("cudnnBackendDestroyDescriptor")) return reinterpret_cast<void*>(destroy);
  if (is("cudnnBackendSetAttribute")) return reinterpret_cast<void*>(set);
  if (is("cudnnBackendGetAttribute")) return reinterpret_cast<void*>(get);
  if (is("cudnnBackendExecute")) return reinterpret_cast<void*>(execute);
  return nullptr;
}

}  // namespace skein::emulated
