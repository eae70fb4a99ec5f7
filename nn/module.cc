// Trees of modules, their parameters as one vector, and slices of its gradient as they become final.
#include "nn/module.h"

#include <algorithm>

#include "engine/random.h"
#include "engine/vectors/vec.h"

namespace skein::nn {
namespace {

// elements: the alignment of vector loads and library kernels.
constexpr int64_t kAlign = 256 / sizeof(float);
int64_t padded(int64_t elements) { return (elements + kAlign - 1) / kAlign * kAlign; }

// The block that a parameter belongs to: "layer1.0" for "layer1.0.conv1.weight", "features.3" for
// "features.3.weight", "fc" for "fc.bias".
std::string block_of(const std::string& name) {
  const size_t first = name.find('.'), second = name.find('.', first + 1);
  const bool numbered = second != std::string::npos &&
                        name.find_first_not_of("0123456789", first + 1) == second && second > first + 1;
  return name.substr(0, numbered ? second : first);
}

// The layer of each parameter, in declaration order, which is the order of forward. A weight begins a
// new layer if its block differs from that of the weight before it; norms and biases belong to the
// weight before them.
std::vector<int> layers_of(const std::vector<Param*>& params) {
  std::vector<int> layers;
  std::string block;
  int layer = -1;
  for (const Param* p : params) {
    const std::string its = block_of(p->name);
    if (layer < 0 || (p->value.rank() > 1 && its != block)) ++layer, block = its;
    layers.push_back(layer);
  }
  return layers;
}

}  // namespace

void Module::each(const std::function<void(Module&)>& f) {
  f(*this);
  for (auto& c : children_) c->each(f);
}

void Module::set_training(bool on) {
  each([on](Module& m) { m.training_ = on; });
}

std::vector<Param*> Module::params() {
  std::vector<Param*> all;
  each([&](Module& m) {
    for (auto& p : m.own_) all.push_back(p.get());
  });
  return all;
}

std::vector<Buffer*> Module::buffers() {
  std::vector<Buffer*> all;
  each([&](Module& m) {
    for (auto& b : m.own_buffers_) all.push_back(b.get());
  });
  return all;
}

Param* Module::param(std::string name, Shape shape, Init init, bool decays) {
  own_.push_back(std::make_unique<Param>());
  Param* p = own_.back().get();
  p->name = std::move(name);
  p->value = Tensor(shape);
  p->init = init;
  p->decays = decays;
  return p;
}

Buffer* Module::buffer(std::string name, Shape shape, float start) {
  own_buffers_.push_back(std::make_unique<Buffer>(Buffer{std::move(name), Tensor(shape), start}));
  return own_buffers_.back().get();
}

void Module::adopt(const std::string& name, std::unique_ptr<Module> m) {
  if (!name.empty()) {
    for (Param* p : m->params()) p->name = name + '.' + p->name;
    for (Buffer* b : m->buffers()) b->name = name + '.' + b->name;
  }
  children_.push_back(std::move(m));
}

Flat flatten(Module& m, Allocator& from) {
  Flat flat;
  const std::vector<Param*> params = m.params();
  const std::vector<int> layers = layers_of(params);
  flat.layers = layers.empty() ? 0 : layers.back() + 1;
  int64_t at = 0;
  for (const bool decays : {true, false}) {
    for (size_t i = 0; i < params.size(); ++i) {
      const Param* p = params[i];
      if (p->decays != decays) continue;
      flat.segments.push_back({p->name, at, p->value.shape(), decays, layers[i]});
      flat.count += p->value.size();
      at += padded(p->value.size());
    }
    if (decays) flat.decayed = at;
  }
  flat.x = Tensor({at}, kF32, from);
  flat.g = Tensor({at}, kF32, from);
  fill(flat.x, 0.f);
  fill(flat.g, 0.f);
  size_t next = 0;
  for (const bool decays : {true, false})
    for (Param* p : params) {
      if (p->decays != decays) continue;
      const Segment& s = flat.segments[next++];
      const Tensor window = flat.x.view(s.shape, s.offset);
      copy_bytes(window, p->value);
      p->value = window;
      p->grad = flat.g.view(s.shape, s.offset);
    }

  at = 0;
  for (Buffer* b : m.buffers()) {
    flat.buffer_segments.push_back({b->name, at, b->value.shape(), false});
    at += padded(b->value.size());
  }
  flat.buffers = Tensor({at}, kF32, from);
  fill(flat.buffers, 0.f);
  next = 0;
  for (Buffer* b : m.buffers()) {
    const Segment& s = flat.buffer_segments[next++];
    const Tensor window = flat.buffers.view(s.shape, s.offset);
    copy_bytes(window, b->value);
    b->value = window;
  }
  release_cached(kCpu);  // frees the parameters' first blocks, whose sizes training never asks for again
  return flat;
}

void initialize(Module& m, uint64_t seed) {
  uint64_t index = 0;
  for (Param* p : m.params()) {
    const Draw draw{seed, Purpose::kInit, index++, 0};
    Tensor host = p->value.device().is_cuda() ? Tensor(p->value.shape()) : p->value;
    switch (p->init.kind) {
      case Init::kConstant:
        fill(host, p->init.a);
        break;
      case Init::kUniform:
        fill_uniform(host, draw, p->init.a, p->init.b);
        break;
      case Init::kNormal:
        fill_normal(host, draw, p->init.a, p->init.b);
        break;
    }
    copy_bytes(p->value, host);
  }
  for (Buffer* b : m.buffers()) fill(b->value, b->start);
}

int64_t count_params(Module& m) {
  int64_t n = 0;
  for (Param* p : m.params()) n += p->value.size();
  return n;
}

// Slices in the order they are emitted, and which of g's segments are final.
struct Slicer::Plan {
  struct Slice {
    int64_t begin, end;
  };
  Tensor g;
  int64_t decayed;
  std::vector<int64_t> starts;  // where the segments start; ascending, since segments are in the order of g
  std::vector<Slice> slices;
  GradReady ready;
  std::vector<bool> final_;
  size_t next = 0;  // the slice to emit next
  size_t edge = 0;  // decaying segments from here to the end of their region are final
  size_t unfinished = 0;

  size_t decaying() const {
    return size_t(std::lower_bound(starts.begin(), starts.end(), decayed) - starts.begin());
  }
  void cut(int64_t begin, int64_t end, int64_t first, int64_t each);
  void reset(GradReady f);
  void mark(const Tensor& grad);
  bool is_final(const Slice& s) const {
    if (unfinished == 0) return true;
    return s.end <= decayed && s.begin >= (edge < decaying() ? starts[edge] : decayed);
  }
  void emit(bool all);
};

// Cuts [begin, end) into slices of `each` elements after a first of `first`, to be emitted from the back.
void Slicer::Plan::cut(int64_t begin, int64_t end, int64_t first, int64_t each) {
  std::vector<Slice> forward;
  for (int64_t at = begin, n = first; at < end; at += n, n = each)
    forward.push_back({at, std::min(end, at + n)});
  slices.insert(slices.end(), forward.rbegin(), forward.rend());
}

void Slicer::Plan::reset(GradReady f) {
  ready = std::move(f);
  final_.assign(starts.size(), false);
  next = 0;
  edge = decaying();
  unfinished = starts.size();
}

void Slicer::Plan::mark(const Tensor& grad) {
  const int64_t at = (static_cast<char*>(grad.raw()) - static_cast<char*>(g.raw())) / int64_t(sizeof(float));
  const auto found = std::lower_bound(starts.begin(), starts.end(), at);
  CHECK(found != starts.end() && *found == at, "a gradient that is no segment of g:", grad.shape());
  const size_t i = size_t(found - starts.begin());
  CHECK(!final_[i], "a gradient was said to be final twice in a step: segment", i);
  final_[i] = true;
  --unfinished;
  while (edge > 0 && final_[edge - 1]) --edge;
}

void Slicer::Plan::emit(bool all) {
  while (next < slices.size() && (all || is_final(slices[next]))) {
    const Slice s = slices[next++];
    if (ready) ready(g.view({s.end - s.begin}, s.begin));
  }
}

int64_t slice_bytes_for(int64_t gradient_bytes, double mib) {
  constexpr int64_t kKiB = 1024;
  constexpr double kMost = 1e15;  // more than any gradient has
  if (mib > 0) return int64_t(std::clamp(mib * double(kKiB * kKiB), 1.0, kMost));
  return std::clamp(gradient_bytes / 8, 256 * kKiB, 4096 * kKiB);
}

Slicer::Slicer(const Flat& flat, int64_t slice_bytes) : plan_(std::make_shared<Plan>()) {
  CHECK(slice_bytes > 0, "slices need a size, not", slice_bytes);
  const int64_t each = padded(std::max<int64_t>(slice_bytes / int64_t(sizeof(float)), kAlign));
  const int64_t last = std::min<int64_t>(each, (1 << 20) / sizeof(float));
  plan_->g = flat.g;
  plan_->decayed = flat.decayed;
  for (const Segment& s : flat.segments) plan_->starts.push_back(s.offset);
  plan_->cut(0, flat.decayed, last, each);
  plan_->cut(flat.decayed, flat.g.size(), last, each);
  plan_->reset({});
}

GradReady Slicer::start(GradReady ready) {
  plan_->reset(std::move(ready));
  return [plan = plan_](const Tensor& grad) {
    plan->mark(grad);
    plan->emit(false);
  };
}

void Slicer::finish() {
  plan_->emit(true);
  plan_->ready = {};
}

}  // namespace skein::nn
