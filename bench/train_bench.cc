// One training step (forward, loss, backward, SGD) on synthetic images: images a second, where time goes.
//
//   train_bench MODEL BATCH SIZE fp32|bf16 THREADS [STEPS] [CHANNELS] [recompute]
//
// With `recompute`, norms are computed again in backward instead of kept, as by --recompute norms. There are
// two rates: by wall time, and by processor seconds divided by threads, which other programs on the machine
// do not change. Each kind of work has its share of the measured peak: products of the multiply-adds of their
// plain sums (Winograd's do fewer, so theirs may exceed 100 %), passes of a copy's bytes a second. The bound
// is the step's multiply-adds at the peak.
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "bench/peaks.h"
#include "engine/cpu/profile.h"
#include "engine/ops.h"
#include "engine/recompute.h"
#include "nn/models.h"
#include "optim/rule.h"

using namespace skein;

namespace {

struct Phases {
  double forward = 0, backward = 0, update = 0, wall = 0, cpu = 0;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double resident_mib() {  // the most so far
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_maxrss) / 1024;
}

// Multiply-adds of a step at full size, counted as 2, in GFLOP an image; 0 where unknown.
double gflop_per_image(const std::string& model) {
  if (model == "resnet50") return 3 * 2 * 4.089 - 2 * 0.118;
  if (model == "resnet18") return 3 * 2 * 1.814 - 2 * 0.118;
  if (model == "resnet20") return 3 * 2 * 0.0408 - 2 * 0.00044;
  return 0;
}

class Step {
 public:
  Step(const std::string& model, int64_t batch, int64_t size, DType t, int64_t channels)
      : input_{size, size, channels, model == "resnet20" ? 10 : 1000},
        module_(nn::make_model(model, input_)) {
    nn::initialize(*module_, 1);
    flat_ = nn::flatten(*module_, allocator(kCpu));
    rule_ = optim::sgd(flat_.x, {.momentum = 0.9f, .weight_decay = 5e-5f, .decayed = flat_.decayed});
    Tensor x({batch, size, size, channels});
    unsigned seed = 1;
    for (int64_t i = 0; i < x.size(); ++i) {
      float sum = 0;  // four uniforms are nearly normal
      for (int j = 0; j < 4; ++j) sum += float((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
      x.data<float>()[i] = sum * 1.7f;
    }
    x_ = cast(x, t);
    labels_ = Tensor({batch}, kI32);
    for (int64_t i = 0; i < batch; ++i) labels_.data<int32_t>()[i] = int32_t(i * 7 % input_.classes);
  }

  Phases run() {
    Phases p;
    const double wall = bench::wall_seconds(), cpu = bench::cpu_seconds();
    double at = wall;
    const auto lap = [&at] {
      const double now = bench::wall_seconds(), passed = now - at;
      at = now;
      return passed;
    };
    {
      Tape tape;
      for (nn::Param* w : module_->params()) tape.watch(w->value, w->grad);
      loss_ = cross_entropy(module_->forward(x_), labels_);
      p.forward = lap();
      tape.backward(loss_);
    }
    p.backward = lap();
    rule_->step(flat_.x, flat_.g, 0.01f);
    p.update = lap();
    p.wall = at - wall, p.cpu = bench::cpu_seconds() - cpu;
    return p;
  }
  float loss() const { return loss_.item(); }

 private:
  nn::Input input_;
  std::unique_ptr<nn::Module> module_;
  nn::Flat flat_;
  std::unique_ptr<optim::Rule> rule_;
  Tensor x_, labels_, loss_;
};

// What this thread did in `steps` steps; the others did as much. `total`: the time of all, in seconds.
void print_kinds(double total, int steps, int threads, double peak, double copy) {
  double known = 0;
  for (int k = 0; k < cpu::kKinds; ++k) {
    const cpu::Work& w = cpu::profile()[size_t(k)];
    known += w.seconds;
    std::printf("  %-13s %7.1f ms %4.1f%%", cpu::kKindNames[k], w.seconds / steps * 1e3,
                100 * w.seconds / total);
    const double rate = (w.flops + w.bytes) / threads / std::max(w.seconds, 1e-9) / 1e9;
    if (w.flops > 0) std::printf("  %6.1f GFLOP/s, %3.0f%% of the peak", rate, 100 * rate / peak);
    if (w.bytes > 0) std::printf("  %6.1f GB/s, %3.0f%% of a copy's", rate, 100 * rate / copy);
    std::printf("\n");
  }
  std::printf("  %-13s %7.1f ms %4.1f%%\n", "other", (total - known) / steps * 1e3,
              100 * (total - known) / total);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 6)
    return std::printf("train_bench MODEL BATCH SIZE fp32|bf16 THREADS [STEPS] [CHANNELS] [recompute]\n"), 2;
  const std::string model = argv[1];
  const int64_t batch = atoi(argv[2]), size = atoi(argv[3]);
  const int threads = atoi(argv[5]), steps = argc > 6 ? atoi(argv[6]) : 5;
  omp_set_num_threads(threads);
  const DType t = std::string(argv[4]) == "bf16" ? kBF16 : kF32;
  recompute_norms() = argc > 8 && std::string(argv[8]) == "recompute";
  Step step(model, batch, size, t, argc > 7 ? atoi(argv[7]) : 3);
  step.run();
  cpu::profile().fill({});
  std::vector<double> wall, busy, forward, backward, update;
  const double thread_from = cpu::thread_seconds();
  for (int i = 0; i < steps; ++i) {
    const Phases p = step.run();
    wall.push_back(p.wall), busy.push_back(p.cpu / threads);
    forward.push_back(p.forward), backward.push_back(p.backward), update.push_back(p.update);
  }
  const double thread_total = cpu::thread_seconds() - thread_from, gflop = gflop_per_image(model);
  std::printf(
      "skein %s b%ld %ldx%ld %s threads=%d: median %.2f img/s wall, %.2f img/s by processor time (best "
      "%.2f), ",
      model.c_str(), long(batch), long(size), long(size), argv[4], threads, double(batch) / median(wall),
      double(batch) / median(busy), double(batch) / *std::min_element(busy.begin(), busy.end()));
  std::printf(
      "loss %.3f, %.0f MiB of tensors and %.0f MiB resident at most\n"
      "  forward %.0f ms, backward %.0f ms, update %.0f ms (wall medians)\n",
      double(step.loss()), double(memory_use(kCpu).peak) / (1 << 20), resident_mib(), median(forward) * 1e3,
      median(backward) * 1e3, median(update) * 1e3);
  const double peak = bench::fma_gflops(t), copy = bench::copy_gbytes(threads);
  print_kinds(thread_total, steps, threads, peak, copy);
  std::printf("  one thread's %s peak %.0f GFLOP/s, copy %.1f GB/s", name_of(t), peak, copy);
  if (gflop > 0) std::printf("; bound by multiply-adds alone %.1f img/s", peak * threads / gflop);
  std::printf("\n");
} catch (const skein::Error& e) { return std::fprintf(stderr, "train_bench: %s\n", e.what()), 1; }
