// Makes finalized plans from a graph of cuDNN's by heuristics, engines and knobs, and caches them.
#include "engine/cuda/conv/conv_plan.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/words/hash.h"

namespace skein::cuda {
namespace {

constexpr const char* kNone = "none";  // the choice not to fuse

// Engine configurations, best first; none if this kind of heuristics has no answer.
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
  bool compiled = false;  // at run time
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
  cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
  const int64_t n = e.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                          CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behavior);
  engine.compiled =
      std::find(behavior, behavior + n, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behavior + n;
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

// f32 without TF32 means products of whole floats: no tensor cores, no narrowed inputs,
// no transforms that cancel.
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
  if (e.compiled) name += ", compiled at run time";
  return name;
}

// `unloaded`: also accepts a kernel that was compiled but could not be loaded without a driver.
std::optional<ConvPlan> plan_for(const Descriptor& device, const Descriptor& configuration,
                                 const Engine& engine, bool unloaded = false) {
  ConvPlan p{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0, name_of(engine), "", engine.compiled};
  p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  const cudnnStatus_t status = p.plan.try_finalize();
  if (status == CUDNN_STATUS_SUCCESS)
    p.plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &p.workspace);
  else if (!unloaded || status != CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER)
    return {};
  p.choice = choice_of(configuration, engine.index);
  return p;
}
}  // namespace

std::vector<ConvPlan> conv_plans(const Descriptor& device, const ConvProblem& k, const PlanWish& wish) {
  const Descriptor graph = graph_of(k);
  std::vector<ConvPlan> plans;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& configuration : candidates(device, graph, mode)) {
      if (plans.size() >= wish.at_most) return plans;
      const Engine engine = engine_of(configuration);
      if (!allowed(k, engine) || (engine.compiled && !wish.compiled)) continue;
      if (auto p = plan_for(device, configuration, engine, wish.unloaded)) plans.push_back(std::move(*p));
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
} catch (const std::exception&) {  // a number is out of range, or this engine has no such knob
  return {};
}

// The kind of GPU as part of a file's name, made from what cuDNN says of the device. Choices hold for every
// GPU of a kind, in any slot of any machine and with any driver.
std::string kind_of(const std::string& said) {
  const auto json = nlohmann::json::parse(said, nullptr, false);
  if (!json.is_object()) return fingerprint(said);
  const int64_t memory = json.value("totalGlobalMem", int64_t(0));  // the driver changes it by some MB
  std::string kind = text(json.value("deviceName", ""), ' ', json.value("deviceVer", 0), ' ',
                          json.value("multiProcessorCount", 0), ' ', (memory + (1 << 29)) >> 30);
  for (char& c : kind)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  return kind;
}

PlanCache::PlanCache(Descriptor device, const std::string& directory)
    : device_(std::move(device)),
      choices_(directory.empty() ? ""
                                 : text(directory, "/cudnn-", cudnn().cudnnGetVersion(), '-',
                                        kind_of(json_of(device_)), ".txt")) {}

const ConvPlan& PlanCache::find(const ConvProblem& k, const Fastest& fastest) {
  const Pick pick = [&](const std::vector<ConvPlan>& plans) -> std::optional<size_t> {
    return fastest && plans.size() > 1 ? fastest(plans) : 0;
  };
  const ConvPlan* p = choose(k, {.at_most = fastest ? kMeasured : 1}, bool(fastest), pick);
  if (!p) throw Error(text("cuDNN has no way to compute the convolution ", k));
  return *p;
}

const ConvPlan* PlanCache::choose(const ConvProblem& k, const PlanWish& wish, bool measured,
                                  const Pick& pick) {
  const std::lock_guard lock(mutex_);
  auto at = plans_.find(k);
  if (at == plans_.end()) at = plans_.emplace(k, make(k, wish, measured, pick)).first;
  return at->second ? &*at->second : nullptr;
}

std::optional<ConvPlan> PlanCache::make(const ConvProblem& k, const PlanWish& wish, bool measured,
                                        const Pick& pick) {
  const std::string key = text(measured ? "measured " : "", k);
  if (const auto choice = choices_.find(key)) {
    if (*choice == kNone) return {};
    if (auto p = plan_of(device_, k, *choice)) return p;
  }
  std::vector<ConvPlan> found;
  try {
    found = conv_plans(device_, k, wish);
  } catch (const Error&) {  // cuDNN refuses the graph; a fused pass has an alternative
    if (k.fused == 0) throw;
  }
  if (found.empty()) return {};
  const std::optional<size_t> chosen = pick(found);
  // What was not measured may have failed for want of memory, and another process may have it.
  if (chosen || measured) choices_.keep(key, chosen ? found[*chosen].choice : kNone);
  if (!chosen) return {};
  return std::move(found[*chosen]);
}

}  // namespace skein::cuda
