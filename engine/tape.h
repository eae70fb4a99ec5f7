// Reverse-mode differentiation by a linear tape: ops append an entry, backward() walks them back.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/outline.h"
#include "engine/vectors/vec.h"

namespace skein {

class Tape;

// What the tape knows of a value: its identity, and the shape, type and device of its gradient. A pullback
// that does not read one of its inputs keeps only this, so that the input's memory can be freed.
struct Value {
  uint64_t id;
  Shape shape;
  DType dtype;
  Device device;
  Value(const Tensor& t) : id(t.id()), shape(t.shape()), dtype(t.dtype()), device(t.device()) {}
};

// Hands a pullback the gradient of one of its inputs, only if that input wants one: pullbacks need no
// "requires grad". The first contribution finds beta = 0 and overwrites (dx is uninitialized memory), later
// ones find beta = 1 and add: activation gradients are never cleared, nor read unnecessarily.
class Pull {
 public:
  // f(dx, beta): dx <- contribution + beta * dx.
  template <class F>
  void operator()(const Value& input, F&& f) {
    float beta = 0;
    if (Tensor dx = slot(input, beta)) f(dx, beta);
  }
  // Hands over a finished contribution that no other code holds or will write; the first one is
  // taken without a copy.
  void give(const Value& input, Tensor dx);
  bool wants(const Value& input) const;

 private:
  friend class Tape;
  explicit Pull(Tape& t) : tape_(t) {}
  Tensor slot(const Value& input, float& beta);
  Tape& tape_;
};

// dy belongs to the pullback: it is not read afterwards, so it may be overwritten or passed to give().
using Pullback = std::function<void(const Tensor& dy, Pull& pull)>;
using GradReady = std::function<void(Tensor grad)>;

class Tape {
 public:
  Tape();  // becomes the calling thread's current tape, until destroyed; tapes nest
  ~Tape();
  Tape(const Tape&) = delete;
  static Tape* current();  // null: nothing is recorded

  // A leaf: its gradient is written (not added) to `grad`, which has x's shape.
  void watch(const Tensor& x, Tensor grad);

  // Walks back from `loss` (one element), freeing activations on the way. `ready(grad)` is called once per
  // watched leaf, as soon as no remaining entry can touch it: leaves used late in forward come first. A leaf
  // the loss does not depend on has its gradient set to zero. The order follows from the first uses that
  // were recorded, so it is right for any control flow. `seed` is the loss's own gradient: all others come
  // out multiplied by it.
  void backward(const Tensor& loss, const GradReady& ready = {}, Scalar seed = 1.f);

  bool wants(const Value& v) const { return grads_.contains(v.id); }
  void append(const std::vector<Tensor>& in, const Tensor& out, Pullback);

 private:
  friend class Pull;
  struct Gradient {
    Tensor value;          // the gradient's memory; empty until touched, unless it is a leaf
    bool touched = false;  // it holds a contribution already
    bool leaf = false;
  };
  struct Entry {
    uint64_t out;  // not the value itself: a pullback that reads it holds it
    Pullback pullback;
  };
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, Gradient> grads_;     // by id of the value
  std::unordered_map<uint64_t, int64_t> first_use_;  // leaf -> earliest entry that reads it
  std::vector<uint64_t> leaves_;                     // in the order watched
  Tape* outer_;
};

// An operation whose result has been computed.
struct Operation {
  const char* op;          // the function's name in ops.h
  std::vector<Tensor> in;  // in the order of its arguments; an absent one is empty
  Tensor out;
  std::function<Settings()> settings = {};  // called only if an outline (outline.h) lists the operation
};
// Every op ends with this call: the thread's outline lists the operation, and a tape that wants the gradient
// of one of the inputs appends an entry. Returns the result. Without outline and tape it costs two tests.
Tensor record(const Operation&, Pullback);
// Whether the thread's tape wants a gradient of one of these.
bool wanted(const std::vector<Tensor>& in);

// While alive, nothing of this thread is recorded.
class NoTape {
 public:
  NoTape();
  ~NoTape();
  NoTape(const NoTape&) = delete;

 private:
  Tape* outer_;
};

}  // namespace skein
