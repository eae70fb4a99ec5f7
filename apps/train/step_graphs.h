// StepGraphs: the training step as recorded work: the gradient of a batch and the local step, once per shape,
// then replayed. docs/cuda_graphs.md.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "data/loader.h"
#include "engine/device/graph.h"
#include "engine/vectors/mix.h"
#include "engine/vectors/slot.h"
#include "optim/rule.h"

namespace skein::apps {

// --cuda-graphs auto|on|off: auto is on for a GPU. On the CPU `on` records, too, which saves nothing there:
// it is how the way is tested. Throws BadOption for another word.
bool records_steps(const std::string& cuda_graphs, Device);

// One thread at a time, always the same.
class StepGraphs {
 public:
  // `most_rows` is the largest batch, `image` the shape [H,W,C] of its images. `say` hears, once, what cannot
  // be recorded and why.
  StepGraphs(bool on, Device, int64_t most_rows, const Shape& image,
             std::function<void(const std::string&)> say);
  bool on() const { return on_; }

  // What the gradient of one step reads. Where steps are recorded, the batch lies in memory of its own, the
  // same at every step, and what differs between steps of one shape is in slots; else the slots are null.
  struct Given {
    data::Batch batch;
    Blend blend;
    const uint64_t* step_slot = nullptr;
    const Blend* blend_slot = nullptr;
    const float* share_slot() const { return blend_slot ? &blend_slot->share : nullptr; }
  };
  Given take(const data::Batch&, const Blend&, int64_t step);

  // Queues body, which computes the gradient from `given` and keeps the rules of Recorded. `handed_out`: it
  // hands out slices of the gradient on the way, in between_recorded().
  Recorded::Way gradient(const Given&, bool handed_out, const Recorded::Body& body);

  // The rule as strategies are to use it: its steps are recorded, at rates that come in a slot. `rule` must
  // live as long. Null unless on().
  std::unique_ptr<optim::Rule> recorded(optim::Rule& rule) const;

  const Recorded& gradients() const { return gradient_; }
  // For the summary: "off", "replayed at 98 of 100 steps", or why steps are not recorded.
  std::string describe() const;

 private:
  struct Numbers {
    uint64_t step = 0;
    Blend blend;
  };
  const bool on_;
  const Device device_;
  const std::function<void(const std::string&)> say_;
  Recorded gradient_;
  int64_t steps_ = 0, replayed_ = 0;
  Tensor images_, labels_;  // u8 [most_rows,H,W,C], i32 [most_rows]; empty unless on
  std::unique_ptr<Slot<Numbers>> numbers_;
};

}  // namespace skein::apps
