// Loss scaling: backward starts from a number above 1, so that small gradients survive in f16 (nothing below
// 2^-24 does), and the gradient of a step is divided by it again. All of this happens on the device, so no
// step waits for the host.
#pragma once
#include <memory>
#include <string>

#include "engine/archive.h"
#include "engine/vectors/vec.h"

namespace skein {

// One for each worker. A step is
//   tape.backward(loss, ready, scale.seed());  ...;  scale.judge(g);  updates that obey scale.on()
// Dynamic: starts at 2^16; a gradient that holds an infinity or NaN halves it, and 2000 good steps in
// a row double it, within 1 to 2^24 (sums of gradients stay far from f32's largest). A scale that is
// not dynamic never changes.
class LossScale {
 public:
  static constexpr float kStart = 65536, kLeast = 1, kMost = 16777216, kGoodSteps = 2000;

  LossScale(Device, bool dynamic, float start = kStart);  // start within kLeast to kMost

  Scalar seed() const { return Scalar::at(state() + kScale); }  // the seed of backward()
  // A flag in device memory: 0 if the gradient judged last overflowed, so that its step must not be taken.
  const float* on() const { return state() + kOn; }

  // g <- g / scale; sets on() to whether all of g is finite, and adjusts the scale. g is f32 of any shape,
  // on the device this was made for; the work runs on its current stream. Workers that judge the same sums
  // keep the same scale.
  void judge(const Tensor& g);

  struct State {
    double scale = 1;
    double good = 0;     // steps since the scale changed
    double skipped = 0;  // in all, up to 2^24
    double stuck = 0;    // skipped in a row, by this process, at the lowest scale
  };
  void send();   // starts copying the state, as of this point of the stream, to the host
  State take();  // the state sent last, or the initial one; waits for that copy alone
  State read() { return send(), take(); }

  // Two fields: "scale" [2] = scale and good steps, "skipped" [1].
  void visit(Archive&);

 private:
  enum Slot { kScale, kGood, kSkipped, kInverse, kOn, kStuck, kSlots };
  float* state() const { return state_.data<float>(); }
  friend struct Verdict;
  friend struct Unscale;
  friend struct Invert;
  Tensor state_, arriving_;  // on the device; pinned on the host
  Event arrived_;
  const bool dynamic_;
};

// What --loss-scale says: auto (dynamic where activations are f16, else none), none, dynamic, or a number
// from 1 to 2^24 that stays. Null: gradients are not scaled. Throws BadOption.
std::unique_ptr<LossScale> make_loss_scale(const std::string& word, DType activations, Device);

}  // namespace skein
