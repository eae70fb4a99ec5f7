// Trees of modules, and their parameters as one vector.
#include "nn/module.h"

#include <algorithm>

#include "engine/random.h"
#include "engine/vectors/vec.h"

namespace skein::nn {
namespace {

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

Layout layout_of(Module& m) {
  Layout l;
  const std::vector<Param*> params = m.params();
  const std::vector<int> layers = layers_of(params);
  l.layers = layers.empty() ? 0 : layers.back() + 1;
  for (const bool decays : {true, false}) {
    for (size_t i = 0; i < params.size(); ++i) {
      const Param* p = params[i];
      if (p->decays != decays) continue;
      l.segments.push_back({p->name, l.size, p->value.shape(), decays, layers[i], i});
      l.count += p->value.size();
      l.size += padded(p->value.size());
    }
    if (decays) l.decayed = l.size;
  }
  return l;
}

Flat flatten(Module& m, Allocator& from) {
  Flat flat{layout_of(m)};
  flat.x = Tensor({flat.size}, kF32, from);
  flat.g = Tensor({flat.size}, kF32, from);
  fill(flat.x, 0.f);
  fill(flat.g, 0.f);
  const std::vector<Param*> params = m.params();
  for (const Segment& s : flat.segments) {
    Param* p = params[s.param];
    const Tensor window = flat.x.view(s.shape, s.offset);
    copy_bytes(window, p->value);
    p->value = window;
    p->grad = flat.g.view(s.shape, s.offset);
  }

  int64_t at = 0;
  for (Buffer* b : m.buffers()) {
    flat.buffer_segments.push_back({b->name, at, b->value.shape(), false});
    at += padded(b->value.size());
  }
  flat.buffers = Tensor({at}, kF32, from);
  fill(flat.buffers, 0.f);
  size_t next = 0;
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

}  // namespace skein::nn
