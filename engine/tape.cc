// Recording entries and walking them back.
#include "engine/tape.h"

#include <algorithm>

#include "engine/device/memory.h"
#include "engine/vectors/vec.h"

namespace skein {

namespace {
thread_local Tape* g_tape = nullptr;
}

Tape::Tape() : outer_(g_tape) { g_tape = this; }
Tape::~Tape() { g_tape = outer_; }
Tape* Tape::current() { return g_tape; }

NoTape::NoTape() : outer_(g_tape) { g_tape = nullptr; }
NoTape::~NoTape() { g_tape = outer_; }

void Tape::watch(const Tensor& x, Tensor grad) {
  CHECK(x.shape() == grad.shape(), x.shape(), grad.shape());
  grads_[x.id()] = {std::move(grad), false, true};
  first_use_[x.id()] = INT64_MAX;
  leaves_.push_back(x.id());
}

void Tape::append(const std::vector<Tensor>& in, const Tensor& out, Pullback pullback) {
  grads_.try_emplace(out.id());
  for (const Tensor& t : in)
    if (auto it = first_use_.find(t.id()); it != first_use_.end())
      it->second = std::min(it->second, int64_t(entries_.size()));
  entries_.push_back({out.id(), std::move(pullback)});
}

void Tape::backward(const Tensor& loss, const GradReady& ready, Scalar seed) {
  CHECK(loss.size() == 1, "backward starts from one number, not from", loss.shape());
  NoTape off;  // what pullbacks compute is not differentiated again
  const MemoryFor what("the backward pass");
  const auto finish_leaf = [&](uint64_t id) {
    Gradient& g = grads_.at(id);
    if (!g.touched) fill(g.value, 0.f);
    if (ready) ready(g.value);
  };
  std::unordered_map<int64_t, std::vector<uint64_t>> done_at;
  Gradient& start = grads_[loss.id()];  // a leaf's own memory if the loss is one
  if (!start.value) start.value = Tensor(loss.shape(), loss.dtype(), loss.device());
  fill(start.value, seed);
  start.touched = true;
  for (uint64_t id : leaves_) {
    const int64_t at = first_use_.at(id);
    if (at == INT64_MAX)
      finish_leaf(id);
    else
      done_at[at].push_back(id);
  }
  Pull pull(*this);
  while (!entries_.empty()) {
    Entry e = std::move(entries_.back());  // popped one by one, so that activations are freed early
    entries_.pop_back();
    auto it = grads_.find(e.out);
    const Gradient dy = it->second;
    if (!dy.leaf) grads_.erase(it);
    // A watched result keeps its gradient, so the pullback, which may overwrite its dy or give it
    // away, gets a copy.
    if (dy.touched) e.pullback(dy.leaf ? dy.value.clone() : dy.value, pull);
    if (auto leaves = done_at.find(int64_t(entries_.size())); leaves != done_at.end())
      for (uint64_t id : leaves->second) finish_leaf(id);
  }
  grads_.clear();
  first_use_.clear();
  leaves_.clear();
}

Tensor Pull::slot(const Value& input, float& beta) {
  auto it = tape_.grads_.find(input.id);
  if (it == tape_.grads_.end()) return {};
  Tape::Gradient& g = it->second;
  if (!g.value) g.value = Tensor(input.shape, input.dtype, input.device);
  beta = g.touched ? 1.f : 0.f;
  g.touched = true;
  return g.value;
}

void Pull::give(const Value& input, Tensor dx) {
  auto it = tape_.grads_.find(input.id);
  if (it == tape_.grads_.end()) return;
  Tape::Gradient& g = it->second;
  CHECK(dx.shape() == input.shape && dx.dtype() == input.dtype, dx.shape(), dx.dtype(), input.shape,
        input.dtype);
  if (g.touched)
    axpy(g.value, 1.f, dx);
  else if (g.leaf)
    copy(g.value, dx);
  else
    g.value = std::move(dx);
  g.touched = true;
}

bool Pull::wants(const Value& input) const { return tape_.wants(input); }

bool wanted(const std::vector<Tensor>& in) {
  const Tape* const t = Tape::current();
  return t && std::any_of(in.begin(), in.end(), [t](const Tensor& x) { return t->wants(x); });
}

Tensor record(const Operation& o, Pullback pullback) {
  if (Outline* const outline = Outline::current())
    outline->add({o.op, o.in, o.out, o.settings ? o.settings() : Settings()});
  if (wanted(o.in)) Tape::current()->append(o.in, o.out, std::move(pullback));
  return o.out;
}

}  // namespace skein
