// From a convolution's shape to finalized cuDNN plans: tensors, operation, graph, heuristics, plan.
#include "engine/cuda/conv_plan.h"

#include <algorithm>
#include <atomic>
#include <ostream>
#include <sstream>

namespace skein::cuda {
namespace {

constexpr size_t kMeasured = 8;  // how many plans are measured

cudnnDataType_t type_of(DType t) {
  CHECK(is_float(t), "cuDNN gets f32, bf16 or f16, not", t);
  return t == kF32 ? CUDNN_DATA_FLOAT : t == kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
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

std::atomic<int64_t> asked{0};

// Engine configurations, best first; none where this kind of heuristics has no answer.
std::vector<Descriptor> candidates(const Descriptor& device, const Descriptor& graph,
                                   cudnnBackendHeurMode_t mode) {
  Descriptor h(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  h.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  h.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  h.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  ++asked;
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
Engine look_at(const Descriptor& e) {
  Engine engine;
  e.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine.index);
  engine.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  engine.notes.resize(size_t(e.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, engine.notes.data())));
  return engine;
}
Engine engine_of(const Descriptor& configuration) {
  Descriptor e(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = e.raw();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  return look_at(e);
}

// Engine and knobs as text.
std::string choice_of(const Descriptor& configuration, int64_t engine) {
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i)
    raw.push_back(knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).raw());
  const int64_t n = configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      int64_t(raw.size()), raw.data());
  std::string choice = text(engine);
  for (int64_t i = 0; i < n; ++i) {
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    knobs[size_t(i)].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knobs[size_t(i)].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    choice += text(' ', int(type), '=', value);
  }
  return choice;
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

namespace {
std::optional<ConvPlan> plan_for(const Descriptor& device, const Descriptor& configuration,
                                 const Engine& engine) {
  ConvPlan p{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0, name_of(engine), ""};
  p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  if (p.plan.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  p.plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &p.workspace);
  p.choice = choice_of(configuration, engine.index);
  return p;
}
}  // namespace

std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem& k, size_t at_most) {
  const Descriptor graph = graph_of(k);
  std::vector<ConvPlan> plans;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& configuration : candidates(device, graph, mode)) {
      if (plans.size() >= at_most) return plans;
      const Engine engine = engine_of(configuration);
      if (!allowed(k, engine)) continue;
      if (auto p = plan_for(device, configuration, engine)) plans.push_back(std::move(*p));
    }
  return plans;
}

std::optional<ConvPlan> plan_of(const Descriptor& device, const ConvProblem& k,
                                const std::string& choice) try {
  std::istringstream in(choice);
  int64_t index = -1;
  if (!(in >> index)) return {};
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR), configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_of(k));
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, device);
  if (engine.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  const Engine known = look_at(engine);
  if (!allowed(k, known)) return {};
  std::vector<Descriptor> knobs;
  for (std::string word; in >> word;) {
    const size_t sign = word.find('=');
    if (sign == std::string::npos) return {};
    const auto type = cudnnBackendKnobType_t(std::stoi(word.substr(0, sign)));
    Descriptor& knob = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, int64_t(std::stoll(word.substr(sign + 1))));
    knob.finalize("a knob");
  }
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::vector<const Descriptor*> all;
  for (const Descriptor& knob : knobs) all.push_back(&knob);
  if (!all.empty()) configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, all);
  if (configuration.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  return plan_for(device, configuration, known);
} catch (const std::exception&) {  // a number out of range, a knob that this engine has not
  return {};
}

int64_t heuristics_asked() { return asked; }

PlanCache::PlanCache(Descriptor device, const std::string& directory)
    : device_(std::move(device)),
      choices_(directory.empty() ? ""
                                 : text(directory, "/cudnn-", cudnn().cudnnGetVersion(), '-',
                                        fingerprint(json_of(device_)), ".txt")) {}

const ConvPlan& PlanCache::find(const ConvProblem& k, const Fastest& fastest) {
  const std::lock_guard lock(mutex_);
  auto at = plans_.find(k);
  if (at == plans_.end()) at = plans_.emplace(k, make(k, fastest)).first;
  return at->second;
}

ConvPlan PlanCache::make(const ConvProblem& k, const Fastest& fastest) {
  const std::string key = text(fastest ? "measured " : "", k);
  if (const auto choice = choices_.find(key))
    if (auto p = plan_of(device_, k, *choice)) return std::move(*p);
  std::vector<ConvPlan> found = conv_plans(device_, k, fastest ? kMeasured : 1);
  if (found.empty()) throw Error(text("cuDNN has no way to compute the convolution ", k));
  const size_t chosen = fastest && found.size() > 1 ? fastest(found) : 0;
  choices_.keep(key, found[chosen].choice);
  return std::move(found[chosen]);
}

}  // namespace skein::cuda
