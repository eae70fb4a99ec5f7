// Replayed steps take what changes from slots: the number of the step, the rate, a blend.
#include "engine/device/graph.h"
#include "engine/vectors/mix.h"
#include "engine/vectors/slot.h"
#include "engine/vectors/vec.h"
#include "nn/models.h"
#include "tests/engine/device/recordings.h"

namespace skein {
namespace {
using namespace testing;

class GraphStep : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, GraphStep, kDevices, device_name);

// A model's whole step: a gradient with new dropout, and the rule with a changing rate.
struct Numbers {
  uint64_t step;
  float rate;
};
class Step {
 public:
  Step(const std::string& model, Device d)
      : model_(nn::make_model(model, {32, 32, 3, 10})), numbers_(d), loss_({1}, kF32, d) {
    nn::initialize(*model_, 3);
    flat_ = nn::flatten(*model_, allocator(d));
    v_ = Tensor::zeros(flat_.x.shape(), kF32, d);
    images_ = Tensor({2, 32, 32, 3}, kF32, d);
    labels_ = Tensor::of<int32_t>({2}, {3, 7}).to(d);
  }
  void prepare(uint64_t step) {
    numbers_.write({step, 0.01f / float(1 + step)});
    copy_bytes(images_, random_normal(images_.shape(), step));
    current_stream(images_.device()).sync();
  }
  void operator()() {
    const RandomScope random(1, 0, 0, &numbers_.get()->step);
    Tape tape;
    for (nn::Param* p : model_->params()) tape.watch(p->value, p->grad);
    const Tensor loss = cross_entropy(model_->forward(images_), labels_);
    tape.backward(loss);
    sgd_update({.x = flat_.x,
                .v = v_,
                .g = flat_.g,
                .at = flat_.x,
                .lr = Scalar::at(&numbers_.get()->rate),
                .mu = 0.9f});
    copy_bytes(loss_, loss);
  }
  std::vector<std::vector<uint8_t>> state() const {
    return {bytes_of(flat_.x), bytes_of(flat_.buffers), bytes_of(v_), bytes_of(loss_)};
  }

 private:
  std::unique_ptr<nn::Module> model_;
  nn::Flat flat_;
  Slot<Numbers> numbers_;
  Tensor v_, images_, labels_, loss_;
};

TEST_P(GraphStep, AStepOfAModelReplaysBitForBit) {
  for (const char* model : {"cnn7", "resnet20"}) {
    SCOPED_TRACE(model);
    Step plain(model, GetParam()), recorded(model, GetParam());
    Recorded work(GetParam(), "the step");
    for (uint64_t k = 0; k < 5; ++k) {
      plain.prepare(k), recorded.prepare(k);
      plain();
      scramble(work.memory(), GetParam());
      work.run({2}, [&] { recorded(); });
      EXPECT_TRUE(plain.state() == recorded.state()) << "step " << k;
    }
  }
}

TEST_P(GraphStep, DropoutDrawsAnew) {
  const Device d = GetParam();
  Slot<uint64_t> step(d);
  const Tensor x({1000}, kF32, d), out({1000}, kF32, d);
  fill(x, 1.f);
  Recorded work(d, "dropout");
  std::vector<std::vector<uint8_t>> seen;
  for (uint64_t k = 0; k < 5; ++k) {
    step.write(k);
    work.run({}, [&] {
      const RandomScope random(9, 77, 0, step.get());
      copy(out, dropout(x, 0.5f, RandomScope::next_draw()));
    });
    const RandomScope random(9, k, 0);
    EXPECT_EQ(values(out), values(dropout(x, 0.5f, RandomScope::next_draw())));
    seen.push_back(bytes_of(out));
    for (size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_NE(seen[i], seen.back());
  }
}

TEST_P(GraphStep, ABlendIsReadFromItsSlot) {
  const Device d = GetParam();
  Slot<Blend> slot(d);
  Tensor pixels({4, 6, 6, 1}, kU8);
  for (int64_t i = 0; i < pixels.size(); ++i) pixels.data<uint8_t>()[i] = uint8_t(i);
  const Tensor x = pixels.to(d), labels = Tensor::of<int32_t>({4}, {0, 1, 2, 0}).to(d);
  const Tensor logits = random_normal({4, 3}, 5).to(d);
  const Tensor image({4, 6, 6, 1}, kF32, d), loss({1}, kF32, d);
  const auto compute = [&](const Blend& b, const Blend* at, const float* share) {
    copy(image, blend_image(x, labels, b, 0, 4, {0.5f}, {0.25f}, kF32, at));
    Targets to{labels, partner_labels(labels, b, at), b.share};
    to.share_slot = share;
    copy(loss, cross_entropy(logits, to, 0.1f));
  };
  Recorded work(d, "a blend");
  const Blend any{.share = 0.5f, .shift = 1};
  for (const Blend& b : {Blend{.share = 0.2f, .shift = 1}, Blend{.share = 0.7f, .shift = 3},
                         Blend{.share = 0.75f, .shift = 2, .top = 1, .left = 2, .bottom = 4, .right = 5},
                         Blend{.share = 0.9f, .shift = 1}}) {
    compute(b, nullptr, nullptr);
    const auto wanted = std::pair(bytes_of(image), bytes_of(loss));
    slot.write(b);
    work.run({}, [&] { compute(any, slot.get(), &slot.get()->share); });
    EXPECT_EQ(std::pair(bytes_of(image), bytes_of(loss)), wanted) << b.share;
  }
}

}  // namespace
}  // namespace skein
