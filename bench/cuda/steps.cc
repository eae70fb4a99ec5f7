// gpu_bench, whole steps: images per second, and what launching costs.
#include <cuda_profiler_api.h>

#include <algorithm>

#include "bench/cuda/gpu_bench.h"
#include "engine/device/graph.h"
#include "engine/numerics.h"
#include "engine/ops.h"
#include "engine/vectors/loss_scale.h"
#include "nn/models.h"
#include "optim/rule.h"

namespace skein::bench {
namespace {

// A model on the device with a batch of noise, and its whole step.
struct Training {
  std::unique_ptr<nn::Module> model;
  nn::Flat flat;
  std::unique_ptr<LossScale> scale;
  std::unique_ptr<optim::Rule> rule;
  Tensor x, y, loss;

  Training(const std::string& name, int64_t batch, const std::string& precision) {
    const bool small = name == "resnet20";
    const nn::Input in{small ? 32 : 224, small ? 32 : 224, 3, small ? 10 : 1000};
    model = nn::make_model(name, in);
    nn::initialize(*model, 1);
    const DType type = precision == "bf16" ? kBF16 : precision == "fp16" ? kF16 : kF32;
    flat = nn::flatten(*model, allocator(kGpu));
    scale = make_loss_scale("auto", type, kGpu);
    rule = optim::sgd(flat.x, {.momentum = 0.9f,
                               .weight_decay = 5e-5f,
                               .decayed = flat.decayed,
                               .on = scale ? scale->on() : nullptr});
    x = noise({batch, in.height, in.width, 3}, type);
    Tensor labels({batch}, kI32);
    for (int64_t i = 0; i < batch; ++i) labels.data<int32_t>()[i] = int32_t(i * 7 % in.classes);
    y = labels.to(kGpu);
    loss = Tensor({1}, kF32, kGpu);
  }
  void step() {
    Tape tape;
    for (nn::Param* w : model->params()) tape.watch(w->value, w->grad);
    const Tensor now = cross_entropy(model->forward(x), y);
    tape.backward(now, {}, scale ? scale->seed() : 1.f);
    if (scale) scale->judge(flat.g);
    rule->step(flat.x, flat.g, 0.01f);
    copy(loss, now);
  }
};

int64_t batch_of(const std::string& name, int64_t batch) {
  return batch > 0 ? batch : name == "resnet20" ? 128 : 256;
}

}  // namespace

namespace {
double profiled_seconds(Training& training) {
  for (int i = 0; i < 3; ++i) training.step();
  current_stream(kGpu).sync();
  cudaProfilerStart();
  const double from = wall_seconds();
  training.step();
  current_stream(kGpu).sync();
  const double seconds = wall_seconds() - from;
  cudaProfilerStop();
  return seconds;
}
}  // namespace

void bench_step(Table& t, const std::string& name, int64_t batch, const std::string& precision, StepWay way) {
  batch = batch_of(name, batch);
  const std::string what = text("step ", name, " b", batch, ' ', precision,
                                way == StepWay::kGraph   ? ""
                                : way == StepWay::kPlain ? ", without graph"
                                                         : ", profiled");
  t.attempt(what, [&] {
    numerics().tf32 = precision == "tf32";
    Training training(name, batch, precision);
    Recorded step(kGpu, what);
    const auto once = [&] {
      if (way == StepWay::kGraph)
        step.run({}, [&] { training.step(); });
      else
        training.step();
    };
    const double s = way == StepWay::kProfiled ? profiled_seconds(training) : seconds_of(once, kWholeSteps);
    CHECK(step.refused().empty(), step.refused());
    t.row(what, double(batch) / s, "img/s", s,
          text("loss ", training.loss.item(), ", ", memory_use(kGpu).peak >> 20, " MiB at most"));
  });
  numerics().tf32 = false;
  release_cached(kGpu);
}

// What launching costs: a step in its own graph against one of eight in a graph, between which nothing is
// launched; the host's time for one launch; and the step without a graph.
void bench_launch(Table& t, const std::string& name, int64_t batch, const std::string& precision) {
  constexpr int kMany = 8;
  batch = batch_of(name, batch);
  const std::string what = text(name, " b", batch, ' ', precision);
  t.attempt("launch of " + what, [&] {
    Training training(name, batch, precision);
    Recorded one(kGpu, "one step"), many(kGpu, "eight steps");
    const double alone = seconds_of([&] { one.run({}, [&] { training.step(); }); }, kWholeSteps);
    const auto several = [&] {
      many.run({}, [&] {
        for (int i = 0; i < kMany; ++i) training.step();
      });
    };
    const double together = seconds_of(several, kWholeSteps) / kMany;
    CHECK(one.refused().empty() && many.refused().empty(), one.refused(), many.refused());
    std::vector<double> calls;
    for (int i = 0; i < 21; ++i) {
      current_stream(kGpu).sync();
      const double from = wall_seconds();
      one.run({}, [&] { training.step(); });
      calls.push_back(wall_seconds() - from);
    }
    std::sort(calls.begin(), calls.end());
    const double plain = seconds_of([&] { training.step(); }, kWholeSteps);
    t.row("launch overhead of a step, " + what, 100 * std::max(0.0, alone - together) / alone, "%",
          alone - together, text(one.length({}), " nodes"));
    t.row(text("host's time to launch a step's graph, ", what), 1e6 * calls[10], "us", calls[10]);
    t.row(text("step with a graph, ", what), double(batch) / alone, "img/s", alone);
    t.row(text("step without, ", what), double(batch) / plain, "img/s", plain);
  });
  release_cached(kGpu);
}

}  // namespace skein::bench
