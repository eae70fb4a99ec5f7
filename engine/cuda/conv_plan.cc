// From a convolution's shape to finalized cuDNN plans: tensors, operation, graph, heuristics, plan.
#include "engine/cuda/conv_plan.h"

#include <algorithm>
#include <ostream>

namespace skein::cuda {
namespace {

cudnnDataType_t type_of(DType t) {
  CHECK(t == kF32 || t == kBF16, "cuDNN gets f32 or bf16, not", t);
  return t == kF32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
}

// cuDNN names axes N C H W (weights: O I R S) whatever the layout; the strides put channels innermost.
Descriptor tensor(int64_t id, DType t, const std::vector<int64_t>& d, int64_t alignment) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(t));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, d);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]});
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  tensor.finalize("a tensor's descriptor");
  return tensor;
}

Descriptor convolution(const ConvProblem& k) {
  Descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(2));
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {k.dilation, k.dilation});
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {k.stride, k.stride});
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {k.padding, k.padding});
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {k.padding, k.padding});
  c.finalize("a convolution's descriptor");
  return c;
}

// The attribute names of one pass: which tensor is which.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
Names names(ConvPass pass) {
  if (pass == ConvPass::kForward)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (pass == ConvPass::kData)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

Descriptor graph_of(const ConvProblem& k) {
  const Names at = names(k.pass);
  Descriptor operation(at.type), graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  operation.set(at.x, tensor(kImageId, k.images, {k.n, k.c, k.h, k.w}, k.alignment));
  operation.set(at.w, tensor(kWeightsId, k.weights, {k.o, k.c / k.groups, k.r, k.s}, k.alignment));
  operation.set(at.y, tensor(kResultId, k.images, {k.n, k.o, k.p(), k.q()}, k.alignment));
  operation.set(at.convolution, convolution(k));
  operation.set(at.alpha, 1.f);
  operation.set(at.beta, k.accumulate ? 1.f : 0.f);
  operation.finalize("a convolution's operation");
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, {&operation});
  graph.finalize("an operation graph");
  return graph;
}

// Engine configurations, best first; none where this kind of heuristics has no answer.
std::vector<Descriptor> candidates(const Descriptor& device, const Descriptor& graph,
                                   cudnnBackendHeurMode_t mode) {
  Descriptor h(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  h.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  h.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  h.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  if (h.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  const int64_t n = h.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < n; ++i) raw.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
  const int64_t filled = h.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, raw.data());
  found.resize(size_t(std::min(n, filled)));
  return found;
}

struct Engine {
  int64_t index = -1;
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool has(cudnnBackendNumericalNote_t n) const {
    return std::find(notes.begin(), notes.end(), n) != notes.end();
  }
};
Engine engine_of(const Descriptor& configuration) {
  Descriptor e(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = e.raw();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  Engine engine;
  e.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine.index);
  engine.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  engine.notes.resize(size_t(e.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, engine.notes.data())));
  return engine;
}

// f32 without TF32 means products of whole floats: no tensor cores, narrowed inputs, transforms that cancel.
bool allowed(const ConvProblem& k, const Engine& e) {
  if (k.deterministic && e.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (e.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (k.images != kF32 || k.tf32) return true;
  for (auto note : {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                    CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD})
    if (e.has(note)) return false;
  return true;
}

std::string name_of(const Engine& e) {
  std::string name = text("engine ", e.index);
  if (e.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) name += ", tensor cores";
  if (e.has(CUDNN_NUMERICAL_NOTE_WINOGRAD)) name += ", Winograd";
  if (e.has(CUDNN_NUMERICAL_NOTE_FFT)) name += ", FFT";
  if (e.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) name += ", not deterministic";
  return name;
}

}  // namespace

std::ostream& operator<<(std::ostream& s, const ConvProblem& k) {
  static constexpr const char* kPasses[] = {"forward", "data gradient", "weight gradient"};
  s << kPasses[int(k.pass)] << ' ' << k.images << '/' << k.weights << " x [" << k.n << ',' << k.h << ','
    << k.w << ',' << k.c << "] w [" << k.o << ',' << k.r << ',' << k.s << ',' << k.c / k.groups << "] stride "
    << k.stride << " padding " << k.padding;
  if (k.dilation != 1) s << " dilation " << k.dilation;
  if (k.groups != 1) s << " groups " << k.groups;
  if (k.accumulate) s << " adding";
  if (k.images == kF32 && k.tf32) s << " TF32";
  if (k.deterministic) s << " deterministic";
  return k.alignment == 16 ? s : s << " aligned to " << k.alignment;
}

std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem& k, size_t at_most) {
  const Descriptor graph = graph_of(k);
  std::vector<ConvPlan> plans;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& configuration : candidates(device, graph, mode)) {
      if (plans.size() >= at_most) return plans;
      const Engine engine = engine_of(configuration);
      if (!allowed(k, engine)) continue;
      ConvPlan p{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0, name_of(engine)};
      p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
      if (p.plan.try_finalize() != CUDNN_STATUS_SUCCESS) continue;
      p.plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &p.workspace);
      plans.push_back(std::move(p));
    }
  return plans;
}

}  // namespace skein::cuda
