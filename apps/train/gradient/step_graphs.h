// StepGraphs: the training step as recorded work: the gradient of a batch and the local step, once per shape,
// then replayed. docs/cuda_graphs.md.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/loader.h"
#include "engine/device/graph.h"
#include "engine/vectors/mix.h"
#include "engine/vectors/slot.h"
#include "optim/rule.h"

namespace skein::apps {

// --cuda-graphs auto|on|off: auto is on for a GPU. On the CPU `on` records, too, for tests; it saves nothing
// there. Throws BadOption for another word.
bool records_steps(const std::string& cuda_graphs, Device);

// Always used by the same thread.
class StepGraphs {
 public:
  // `most_rows` is the largest batch, `image` the shape [H,W,C] of its images. `say` is called once if
  // something cannot be recorded, with the reason.
  StepGraphs(bool on, Device, int64_t most_rows, const Shape& image,
             std::function<void(const std::string&)> say);
  bool on() const { return on_; }
  // From now on batches are of other sizes: what was recorded is forgotten.
  void begin_again(int64_t most_rows);

  // What the gradient of one step reads. If steps are recorded, the batch is always in the same memory, and
  // values that differ between steps of one shape are in slots; else the slots are null.
  struct Given {
    data::Batch batch;
    Blend blend;
    const uint64_t* step_slot = nullptr;
    const Blend* blend_slot = nullptr;
    const float* share_slot() const { return blend_slot ? &blend_slot->share : nullptr; }
  };
  Given take(const data::Batch&, const Blend&, int64_t step);

  // Queues body, which computes the gradient from `given` and keeps the rules of Recorded. `handed_out`: the
  // body hands out slices of the gradient as it runs, in between_recorded().
  Recorded::Way gradient(const Given&, bool handed_out, const Recorded::Body& body);

  // The rule for strategies to use: its steps are recorded, with rates in a slot. `rule` must outlive
  // it. Null unless on().
  std::unique_ptr<optim::Rule> recorded(optim::Rule& rule) const;

  const Recorded& gradients() const { return *gradient_; }
  // For the summary: "off", "replayed at 98 of 100 steps, in 2.1 GB of memory", or why it is not recorded.
  std::string describe() const;

 private:
  struct Numbers {
    uint64_t step = 0;
    Blend blend;
  };
  const bool on_;
  const Device device_;
  const std::function<void(const std::string&)> say_;
  const Shape image_;
  std::optional<Recorded> gradient_;
  int64_t steps_ = 0, replayed_ = 0;
  Tensor images_, labels_;  // u8 [most_rows,H,W,C], i32 [most_rows]; empty unless on
  std::unique_ptr<Slot<Numbers>> numbers_;
};

}  // namespace skein::apps
