// Converts between a model in memory and torchvision's file format.
#include "apps/model/weights.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "apps/base/digest.h"
#include "engine/vectors/vec.h"
#include "engine/words/json.h"
#include "nn/file_layout.h"

namespace skein::apps {
namespace {

constexpr const char* kCounter = "num_batches_tracked";

Tensor on_host(const Tensor& t) {
  Tensor host = t.to(kCpu);
  if (t.device().is_cuda()) current_stream(t.device()).sync();
  return host;
}

// "bn1." for "bn1.running_mean"; null for other buffers.
std::optional<std::string> norm_of(const std::string& buffer) {
  const std::string mean = "running_mean";
  if (!buffer.ends_with(mean)) return std::nullopt;
  return buffer.substr(0, buffer.size() - mean.size());
}

std::string listed(const std::vector<std::string>& names) {
  std::string s;
  for (size_t i = 0; i < names.size() && i < 5; ++i) s += (i ? ", " : "") + names[i];
  if (names.size() > 5) s += text(" and ", names.size() - 5, " more");
  return s;
}

// The file's tensors under the names of the module, which are all checked before anything is changed.
struct Fit {
  std::vector<std::pair<const nn::Param*, Tensor>> params;
  std::vector<std::pair<const nn::Buffer*, Tensor>> buffers;
  std::vector<std::string> missing, unexpected, misshapen;
  std::optional<std::pair<int64_t, int64_t>> classes;  // the file's and ours, if nothing else differs
};

Tensor as_f32(const Tensor& t) {
  if (t.dtype() == kF32) return t;
  Tensor y(t.shape());
  copy(y, t);
  return y;
}

// Takes one named tensor if it fits, else notes it in the lists.
bool take(Fit& fit, const std::map<std::string, Tensor>& file, const std::string& name, const Shape& wanted) {
  const auto at = file.find(name);
  if (at == file.end()) {
    fit.missing.push_back(name);
    return false;
  }
  const Tensor& t = at->second;
  if (t.shape() == wanted && is_float(t.dtype())) return true;
  fit.misshapen.push_back(
      text(name, " (", t.dtype(), " ", t.shape(), " in the file, f32 ", wanted, " in the model)"));
  return false;
}

bool rows_alone_differ(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && a.rank() > 0 && a[0] != b[0] &&
         std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

std::string layer_of(const std::string& param) { return param.substr(0, param.rfind('.') + 1); }

// A file for another number of classes differs in the last layer's rows and nowhere else.
void look_at_classes(Fit& fit, const std::map<std::string, Tensor>& file,
                     const std::vector<nn::Param*>& params) {
  if (params.empty() || fit.misshapen.empty() || !fit.missing.empty() || !fit.unexpected.empty()) return;
  const std::string layer = layer_of(params.back()->name);
  size_t explained = 0;
  for (const nn::Param* p : params) {
    const Shape& there = file.at(p->name).shape();
    const Shape here = nn::file_shape(*p);
    if (!p->name.starts_with(layer) || !rows_alone_differ(there, here)) continue;
    fit.classes = {there[0], here[0]};
    ++explained;
  }
  if (explained != fit.misshapen.size()) fit.classes.reset();
}

Fit fit_file(const TensorFile& source, nn::Module& m) {
  const std::map<std::string, Tensor> file(source.tensors.begin(), source.tensors.end());
  Fit fit;
  std::vector<std::string> known;
  const std::vector<nn::Param*> params = m.params();
  for (const nn::Param* p : params) {
    known.push_back(p->name);
    if (take(fit, file, p->name, nn::file_shape(*p))) fit.params.emplace_back(p, as_f32(file.at(p->name)));
  }
  for (const nn::Buffer* b : m.buffers()) {
    known.push_back(b->name);
    if (take(fit, file, b->name, b->value.shape())) fit.buffers.emplace_back(b, as_f32(file.at(b->name)));
    if (const auto norm = norm_of(b->name)) known.push_back(*norm + kCounter);
  }
  std::sort(known.begin(), known.end());
  for (const auto& [name, tensor] : file)
    if (!std::binary_search(known.begin(), known.end(), name)) fit.unexpected.push_back(name);
  look_at_classes(fit, file, params);
  return fit;
}

std::string as_json(const std::vector<std::string>& names) { return json_text(nlohmann::json(names)); }

// A directory's name may be any bytes, but a file's metadata are UTF-8.
std::vector<std::string> as_in_files(const std::vector<std::string>& names) {
  return nlohmann::json::parse(as_json(names)).get<std::vector<std::string>>();
}

constexpr const char* kRemedy = "; give the data it was trained on, or train from scratch without --weights";

// How the file's classes differ from the data's: "was trained on 10 classes, the data have 3"; empty
// if they are equal.
std::string difference(const std::vector<std::string>& theirs, const std::vector<std::string>& data) {
  const std::vector<std::string> ours = as_in_files(data);
  if (theirs.empty() || ours.empty() || theirs == ours) return "";
  if (theirs.size() != ours.size())
    return text("was trained on ", theirs.size(), " classes, the data have ", ours.size());
  const auto differ = std::mismatch(theirs.begin(), theirs.end(), ours.begin());
  return text("was trained on other classes: number ", differ.first - theirs.begin(), " is '", *differ.first,
              "' there and '", *differ.second, "' in the data");
}

void refuse_misfit(const std::string& path, const ModelInfo& info, const Fit& fit) {
  std::string faults;
  if (!fit.missing.empty()) faults += "\n  missing: " + listed(fit.missing);
  if (!fit.unexpected.empty()) faults += "\n  not in the model: " + listed(fit.unexpected);
  if (!fit.misshapen.empty()) faults += "\n  of another shape or type: " + listed(fit.misshapen);
  if (!faults.empty())
    throw BadFile(text(path, ": does not fit the model here",
                       info.model.empty() ? "" : text("; it was made by --model ", info.model), faults));
}

// With such a number every output would be one, and the first class would be the answer to everything.
void refuse_not_finite(const std::string& path, const Fit& fit) {
  std::vector<std::string> names;
  for (const auto& [p, value] : fit.params)
    if (!all_finite(value)) names.push_back(p->name);
  for (const auto& [b, value] : fit.buffers)
    if (!all_finite(value)) names.push_back(b->name);
  if (!names.empty())
    throw BadFile(text(path, ": holds numbers that are not finite, in ", listed(names),
                       ": its training has diverged, or the file is damaged"));
}

void take_over(const Fit& fit) {
  for (const auto& [p, value] : fit.params) nn::from_file(*p, value, p->value);
  for (const auto& [b, value] : fit.buffers) copy_bytes(b->value, value);
}

}  // namespace

void export_model(const std::string& path, nn::Module& m, const ModelInfo& info) {
  TensorFile file;
  file.metadata = info.more;
  file.metadata["format"] = "pt";  // readers of PyTorch's files ask for it
  file.metadata["version"] = SKEIN_VERSION;
  file.metadata["model"] = info.model;
  file.metadata["steps"] = std::to_string(info.steps);
  file.metadata["classes"] = as_json(info.classes);
  for (const nn::Param* p : m.params()) file.tensors.emplace_back(p->name, nn::to_file(*p, p->value));
  for (const nn::Buffer* b : m.buffers()) {
    file.tensors.emplace_back(b->name, on_host(b->value));
    if (const auto norm = norm_of(b->name))
      file.tensors.emplace_back(*norm + kCounter, Tensor::of<int64_t>({}, {info.steps}));
  }
  write_safetensors(path, file);
}

ModelInfo info_of(const std::string& path, const TensorFile& file) {
  ModelInfo info;
  for (const auto& [name, t] : file.tensors)
    if (name.ends_with(kCounter) && t.dtype() == kI64 && t.size() == 1) info.steps = *t.data<int64_t>();
  for (const auto& [key, value] : file.metadata) {
    if (key == "model") {
      info.model = value;
    } else if (key == "classes") {
      const auto names = parse_json(value);
      if (!names.is_array() ||
          !std::all_of(names.begin(), names.end(), [](const auto& n) { return n.is_string(); }))
        throw BadFile(text(path, ": damaged: its metadata 'classes' is not a list of names"));
      info.classes = names.get<std::vector<std::string>>();
    } else if (key == "steps") {
      std::from_chars(value.data(), value.data() + value.size(), info.steps);
    } else {
      info.more[key] = value;
    }
  }
  return info;
}

std::string classifier_of(nn::Module& m) { return layer_of(m.params().back()->name); }

ModelInfo import_model(const std::string& path, const TensorFile& file, nn::Module& m,
                       const std::vector<std::string>& classes) {
  const ModelInfo info = info_of(path, file);
  const Fit fit = fit_file(file, m);
  if (fit.classes)
    throw BadFile(text(path, ": was made for ", fit.classes->first, " classes, the model here has ",
                       fit.classes->second, kRemedy));
  refuse_misfit(path, info, fit);
  const std::string differ = difference(info.classes, classes);
  if (!differ.empty()) throw BadFile(text(path, ": ", differ, kRemedy));
  refuse_not_finite(path, fit);
  take_over(fit);
  return info;
}

std::string import_for_tuning(const std::string& path, nn::Module& m,
                              const std::vector<std::string>& classes) {
  const TensorFile file = read_safetensors(path);
  const ModelInfo info = info_of(path, file);
  Fit fit = fit_file(file, m);
  std::string why = difference(info.classes, classes);
  if (fit.classes)
    why = text("was made for ", fit.classes->first, " classes, the data have ", fit.classes->second);
  else
    refuse_misfit(path, info, fit);
  const std::string layer = classifier_of(m);
  if (!why.empty()) {
    std::erase_if(fit.params, [&](const auto& entry) { return entry.first->name.starts_with(layer); });
    why = text(path, ": ", why, "; the classifier (", layer.substr(0, layer.size() - 1),
               ") is initialized from the seed");
  }
  refuse_not_finite(path, fit);
  take_over(fit);
  return why;
}

std::string parameter_hash(const nn::Flat& flat, const Tensor& x) {
  CHECK(x.size() == flat.x.size() && x.dtype() == kF32, x.shape(), flat.x.shape());
  std::vector<const nn::Segment*> by_name;
  for (const nn::Segment& s : flat.segments) by_name.push_back(&s);
  std::sort(by_name.begin(), by_name.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  const Tensor host = on_host(x);
  Digest digest;
  for (const nn::Segment* s : by_name)
    digest.add(host.data<float>() + s->offset, size_t(s->shape.volume()) * sizeof(float));
  return digest.hex();
}

std::string layout_hash(const nn::Flat& flat) {
  Digest digest;
  for (const auto* list : {&flat.segments, &flat.buffer_segments})
    for (const nn::Segment& s : *list) {
      const std::string line = text(s.name, ' ', s.shape, ' ', s.offset, ' ', s.decays, '\n');
      digest.add(line.data(), line.size());
    }
  return digest.hex();
}

}  // namespace skein::apps
