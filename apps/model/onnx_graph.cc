// Maps each operation to ONNX's operators.
#include "apps/model/onnx_graph.h"

#include <set>

namespace skein::apps {
namespace {

// The index of axis i of our [N,H,W,C] in [N,C,H,W], and the permutations between them.
constexpr int64_t kPlace[4] = {0, 2, 3, 1};
const std::vector<int64_t> kToFirst = {0, 3, 1, 2}, kToLast = {0, 2, 3, 1};

// Operations that are one node of the same meaning; "" if ONNX has none.
const std::map<std::string, const char*> kPointwise = {
#define UNARY(name, onnx, f, df) {#name, onnx},
#define BINARY(name, onnx, f, da, db) {#name, onnx},
#include "engine/ops/pointwise.def"
#undef UNARY
#undef BINARY
};

void attribute(onnx::Node& node, const char* name, int64_t value) {
  onnx::Attribute* a = node.add_attribute();
  a->set_name(name), a->set_type(onnx::Attribute::INT), a->set_i(value);
}
void attribute(onnx::Node& node, const char* name, float value) {
  onnx::Attribute* a = node.add_attribute();
  a->set_name(name), a->set_type(onnx::Attribute::FLOAT), a->set_f(value);
}
void attribute(onnx::Node& node, const char* name, const std::vector<int64_t>& values) {
  onnx::Attribute* a = node.add_attribute();
  a->set_name(name), a->set_type(onnx::Attribute::INTS);
  for (const int64_t v : values) a->add_ints(v);
}

int64_t whole(const Outline::Step& s, const char* setting) { return int64_t(s.settings.at(setting).at(0)); }

// A value whose axis 0 is called "batch" and whose other extents are fixed.
void describe(onnx::ValueInfo& v, const std::string& name, const std::vector<int64_t>& extents) {
  v.set_name(name);
  auto* type = v.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::Tensor::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("batch");
  for (size_t i = 1; i < extents.size(); ++i) type->mutable_shape()->add_dim()->set_dim_value(extents[i]);
}

}  // namespace

OnnxGraph::OnnxGraph(onnx::Graph& to, nn::Module& m) : to_(to) {
  for (const nn::Param* p : m.params()) names_[p->value.id()] = p->name;
  for (const nn::Buffer* b : m.buffers()) names_[b->value.id()] = b->name;
}

void OnnxGraph::input(const Tensor& t, const std::string& name) {
  CHECK(t.rank() == 4, "images are [N,H,W,C], not", t.shape());
  batch_ = t.dim(0);
  describe(*to_.add_input(), name, {batch_, t.dim(3), t.dim(1), t.dim(2)});
  set(t, name, true);
}

void OnnxGraph::output(const Outline& outline, const Tensor& t, const std::string& name) {
  const Outline elsewhere;  // keeps what is computed from here on out of the outline
  std::set<const Step*> needed;
  std::vector<Tensor> open = {t};
  while (!open.empty()) {
    const Tensor next = open.back();
    open.pop_back();
    const Step* s = values_.contains(next.id()) ? nullptr : outline.source(next);
    if (s && needed.insert(s).second) open.insert(open.end(), s->in.begin(), s->in.end());
  }
  for (const Step& s : outline.steps())
    if (needed.contains(&s)) emit(s);
  node("Identity", {plain(t)}, name);
  describe(*to_.add_output(), name, {t.shape().begin(), t.shape().end()});
}

onnx::Node& OnnxGraph::node(const char* type, const Names& in, const std::string& out) {
  onnx::Node& n = *to_.add_node();
  n.set_op_type(type);
  n.set_name(text(type, '_', to_.node_size() - 1));
  for (const std::string& name : in) n.add_input(name);
  n.add_output(out);
  return n;
}

std::string OnnxGraph::add(const char* type, const Names& in) {
  const std::string out = text("value_", next_++);
  node(type, in, out);
  return out;
}

std::string OnnxGraph::constant(const Tensor& f32, const std::string& name) {
  const Tensor host = f32.to(kCpu);
  onnx::Tensor& t = *to_.add_initializer();
  t.set_name(name.empty() ? text("constant_", next_++) : name);
  t.set_data_type(onnx::Tensor::FLOAT);
  for (const int64_t d : host.shape()) t.add_dims(d);
  t.set_raw_data(host.data<float>(), size_t(host.bytes()));
  return t.name();
}

std::string OnnxGraph::numbers(const std::vector<int64_t>& values) {
  onnx::Tensor& t = *to_.add_initializer();
  t.set_name(text("constant_", next_++));
  t.set_data_type(onnx::Tensor::INT64);
  t.add_dims(int64_t(values.size()));
  t.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return t.name();
}

std::string OnnxGraph::leaf(const Tensor& t) {
  const auto known = values_.find(t.id());
  if (known != values_.end()) return known->second.name;
  const auto named = names_.find(t.id());
  const std::string name = constant(t, named == names_.end() ? "" : named->second);
  set(t, name, false);
  return name;
}

std::string OnnxGraph::convolution_weight(const Tensor& w) {
  std::string& name = other_[{text(w.id()), 'w'}];
  if (!name.empty()) return name;
  const NoTape off;
  const auto named = names_.find(w.id());
  return name =
             constant(skein::transpose(w.to(kCpu), {0, 3, 1, 2}), named == names_.end() ? "" : named->second);
}

const OnnxGraph::Value& OnnxGraph::value(const Tensor& t) {
  if (!values_.contains(t.id())) leaf(t);
  return values_.at(t.id());
}

void OnnxGraph::set(const Tensor& t, const std::string& name, bool channels_first) {
  values_[t.id()] = {name, channels_first};
}

std::string OnnxGraph::channels_first(const Tensor& t) {
  const Value v = value(t);
  if (v.channels_first) return v.name;
  std::string& name = other_[{v.name, 'f'}];
  if (name.empty()) name = add("Transpose", {v.name}), attribute(last(), "perm", kToFirst);
  return name;
}

std::string OnnxGraph::plain(const Tensor& t) {
  const Value v = value(t);
  if (!v.channels_first) return v.name;
  std::string& name = other_[{v.name, 'p'}];
  if (name.empty()) name = add("Transpose", {v.name}), attribute(last(), "perm", kToLast);
  return name;
}

void OnnxGraph::emit(const Step& s) {
  const std::string& op = s.op;
  if (op == "conv2d") return convolution(s, false);
  if (op == "conv_bn") return convolution(s, true);
  if (op == "batch_norm") return set(s.out, norm(s, channels_first(s.in[0]), 1), true);
  if (op == "max_pool2d") return pool(s, "MaxPool");
  if (op == "avg_pool2d") return pool(s, "AveragePool");
  if (op == "mean") return reduce(s, "ReduceMean");
  if (op == "reshape") return reshape(s);
  if (op == "transpose") return transpose(s);
  if (op == "pad") return pad(s);
  if (op == "matmul") return set(s.out, add("MatMul", {plain(s.in[0]), plain(s.in[1])}), false);
  if (op == "linear") {
    Names in = {plain(s.in[0]), leaf(s.in[1])};
    if (s.in[2]) in.push_back(leaf(s.in[2]));
    set(s.out, add("Gemm", in), false);
    return attribute(last(), "transB", int64_t(1));
  }
  if (pointwise(s)) return;
  throw Error(text("ONNX export: ", op, " with a result of shape ", s.out.shape(),
                   " has no counterpart yet; see apps/model/onnx_graph.cc"));
}

// in: x, w, bias; or x, w, gamma, shift, mean, variance, residual.
void OnnxGraph::convolution(const Step& s, bool with_norm) {
  const Tensor& w = s.in[1];
  Names in = {channels_first(s.in[0]), convolution_weight(w)};
  if (!with_norm && s.in[2]) in.push_back(leaf(s.in[2]));
  const std::string y = add("Conv", in);
  const int64_t stride = whole(s, "stride"), padding = whole(s, "padding"), dilation = whole(s, "dilation");
  attribute(last(), "kernel_shape", {w.dim(1), w.dim(2)});
  attribute(last(), "strides", {stride, stride});
  attribute(last(), "pads", {padding, padding, padding, padding});
  attribute(last(), "dilations", {dilation, dilation});
  attribute(last(), "group", whole(s, "groups"));
  set(s.out, with_norm ? norm(s, y, 2) : y, true);
}

// The norm of x; its gamma, shift, mean, variance and residual are the step's inputs from `first` on.
std::string OnnxGraph::norm(const Step& s, std::string x, size_t first) {
  CHECK(whole(s, "training") == 0, "a model is exported in evaluation mode");
  Names in = {x};
  for (size_t i = first; i < first + 4; ++i) in.push_back(leaf(s.in[i]));
  x = add("BatchNormalization", in);
  attribute(last(), "epsilon", float(s.settings.at("epsilon").at(0)));
  if (const Tensor& residual = s.in[first + 4]) x = add("Add", {x, channels_first(residual)});
  return whole(s, "relu") ? add("Relu", {x}) : x;
}

void OnnxGraph::pool(const Step& s, const char* type) {
  CHECK(whole(s, "ceil_mode") == 0, "windows that hang over the end have no counterpart");
  set(s.out, add(type, {channels_first(s.in[0])}), true);
  const int64_t size = whole(s, "size"), stride = whole(s, "stride"), padding = whole(s, "padding");
  attribute(last(), "kernel_shape", {size, size});
  attribute(last(), "strides", {stride, stride});
  attribute(last(), "pads", {padding, padding, padding, padding});
}

void OnnxGraph::reduce(const Step& s, const char* type) {
  const Value x = value(s.in[0]);
  const bool keep = whole(s, "keep") != 0;
  std::vector<int64_t> axes;
  for (const double a : s.settings.at("axes")) axes.push_back(x.channels_first ? kPlace[int(a)] : int64_t(a));
  CHECK(!x.channels_first || keep || s.out.rank() <= 2,
        "what is left of a map has its axes in another order");
  set(s.out, add(type, {x.name}), x.channels_first && keep);
  attribute(last(), "axes", axes);
  attribute(last(), "keepdims", int64_t(keep));
}

// The batch is axis 0 or part of it; no other extent may depend on the batch.
void OnnxGraph::reshape(const Step& s) {
  CHECK(s.out.rank() > 0 && s.out.dim(0) % batch_ == 0, s.in[0].shape(), s.out.shape());
  std::vector<int64_t> shape(s.out.shape().begin(), s.out.shape().end());
  shape[0] = -1;
  const std::string x = plain(s.in[0]);
  set(s.out, add("Reshape", {x, numbers(shape)}), false);
}

void OnnxGraph::transpose(const Step& s) {
  const Value x = value(s.in[0]);
  std::vector<int64_t> perm;
  bool same = true;
  for (const double a : s.settings.at("axes")) {
    perm.push_back(x.channels_first ? kPlace[int(a)] : int64_t(a));
    same = same && perm.back() == int64_t(perm.size()) - 1;
  }
  if (same) return set(s.out, x.name, false);
  set(s.out, add("Transpose", {x.name}), false);
  attribute(last(), "perm", perm);
}

void OnnxGraph::pad(const Step& s) {
  const Value x = value(s.in[0]);
  const size_t rank = size_t(s.out.rank());
  std::vector<int64_t> by(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t at = x.channels_first ? size_t(kPlace[i]) : i;
    by[at] = int64_t(s.settings.at("before")[i]);
    by[at + rank] = int64_t(s.settings.at("after")[i]);
  }
  set(s.out, add("Pad", {x.name, numbers(by)}), x.channels_first);
}

bool OnnxGraph::pointwise(const Step& s) {
  const auto row = kPointwise.find(s.op);
  if (row == kPointwise.end() || !*row->second) return false;
  bool same = true;  // same shape and layout of all; then the layout does not matter
  for (const Tensor& t : s.in)
    same = same && t.shape() == s.out.shape() && value(t).channels_first == value(s.in[0]).channels_first;
  Names in;
  for (const Tensor& t : s.in) in.push_back(same ? value(t).name : plain(t));
  set(s.out, add(row->second, in), same && value(s.in[0]).channels_first);
  return true;
}

}  // namespace skein::apps
