// Holds the inputs of recorded steps, and the rule that records its steps.
#include "apps/train/gradient/step_graphs.h"

#include <algorithm>

#include "engine/device/device_trouble.h"
#include "engine/vectors/narrow.h"
#include "engine/words/find_row.h"

namespace skein::apps {

namespace {

class RecordedRule final : public optim::Rule {
 public:
  RecordedRule(optim::Rule& rule, Device d, const std::function<void(const std::string&)>& say)
      : rule_(rule), rate_(d), steps_(d, "the local step", say) {}

  // A rate that is already on the device is read from there.
  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    if (!lr.slot) {
      rate_.write(lr.value);
      lr.slot = rate_.get();
    }
    const auto place = [](const void* p) { return int64_t(reinterpret_cast<intptr_t>(p)); };
    const auto way =
        steps_.run({place(x.address()), place(g.address()), place(at.address()), place(lr.slot), x.size()},
                   [&] { rule_.step(x, g, at, lr); });
    if (way == Recorded::Way::kReplayed) NarrowPass(x).done();  // the replayed pass has written x's copy, too
  }
  optim::Rule::Decay decay() const override { return rule_.decay(); }
  const float* on() const override { return rule_.on(); }
  bool evaluated_beside(const Tensor& y) const override { return rule_.evaluated_beside(y); }
  float ascent() const override { return rule_.ascent(); }
  void reset() override { rule_.reset(); }
  void visit(Archive& a) override { rule_.visit(a); }

 private:
  optim::Rule& rule_;
  Slot<float> rate_;
  Recorded steps_;
};

}  // namespace

bool records_steps(const std::string& word, Device d) {
  return one_of<bool>("--cuda-graphs", word, {{"auto", d.is_cuda()}, {"on", true}, {"off", false}});
}

StepGraphs::StepGraphs(bool on, Device d, int64_t most_rows, const Shape& image,
                       std::function<void(const std::string&)> say)
    : on_(on), device_(d), say_(std::move(say)), image_(image) {
  CHECK(!on_ || image.rank() == 3, image);
  if (on_) numbers_ = std::make_unique<Slot<Numbers>>(d);
  begin_again(most_rows);
}

void StepGraphs::begin_again(int64_t most_rows) {
  gradient_.emplace(device_, "the gradient of a batch", say_);
  if (!on_) return;
  images_ = Tensor({most_rows, image_[0], image_[1], image_[2]}, kU8, device_);
  labels_ = Tensor({most_rows}, kI32, device_);
}

StepGraphs::Given StepGraphs::take(const data::Batch& batch, const Blend& blend, int64_t step) {
  Given g{.batch = batch, .blend = blend};
  if (!on_) return g;
  g.batch.images = images_.view(batch.images.shape());
  g.batch.labels = labels_.view(batch.labels.shape());
  copy_bytes(g.batch.images, batch.images);
  copy_bytes(g.batch.labels, batch.labels);
  numbers_->write({uint64_t(step), blend});
  const Numbers* const there = numbers_->get();
  g.step_slot = &there->step;
  g.blend_slot = &there->blend;
  return g;
}

Recorded::Way StepGraphs::gradient(const Given& g, bool handed_out, const Recorded::Body& body) {
  if (!on_) return body(), Recorded::Way::kPlain;
  const Recorded::Way way = gradient_->run({g.batch.size(), g.blend.shift > 0, handed_out}, body);
  ++steps_;
  replayed_ += way == Recorded::Way::kReplayed;
  return way;
}

std::string StepGraphs::describe() const {
  if (!on_) return "off";
  if (!gradient_->refused().empty()) return text("not recorded: ", gradient_->refused());
  int64_t bytes = 0;
  for (const auto& block : gradient_->memory().blocks()) bytes += block.second;
  return text("replayed at ", replayed_, " of ", steps_, " steps, in ", bytes_in_words(bytes), " of memory");
}

std::unique_ptr<optim::Rule> StepGraphs::recorded(optim::Rule& rule) const {
  if (!on_) return nullptr;
  return std::make_unique<RecordedRule>(rule, device_, say_);
}

}  // namespace skein::apps
