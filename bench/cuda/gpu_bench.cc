// What one GPU does: copy bandwidth, vector kernels, products, convolutions by layer, norms, whole steps.
//
//   gpu_bench [--only copy,vec,gemm,conv,fusion,norm,step,launch] [--models resnet50,resnet18,resnet20] [--batch N]
//             [--precision bf16,fp16,fp32,tf32] [--measure 1] [--graphs on|off] [--json FILE]
//             [--describe FILE]
//
// --measure 1 lets convolutions choose the fastest of cuDNN's plans, not its first choice. --describe writes
// what cuDNN says of the device: with it plans can be made where there is none. --graphs off launches every
// kernel of a step by itself; on, the default, replays a CUDA graph, as training does.
//
// Times are medians of rounds of at least 20 ms each, by the host's clock around a synchronized stream.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/cuda/batch_norm.h"
#include "engine/cuda/conv_run.h"
#include "engine/graph.h"
#include "engine/loss_scale.h"
#include "engine/numerics.h"
#include "engine/ops.h"
#include "engine/random.h"
#include "engine/vec.h"
#include "nn/models.h"
#include "optim/rule.h"
#include "tests/cuda/conv_shapes.h"

using namespace skein;

namespace {

constexpr Device kGpu{Device::kCuda, 0};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F>
double seconds_of(F f) {
  Stream& stream = current_stream(kGpu);
  const auto timed = [&](int n) {
    stream.sync();
    const double from = now();
    for (int i = 0; i < n; ++i) f();
    stream.sync();
    return now() - from;
  };
  timed(2);
  const double once = timed(1);
  const int n = std::max(1, int(0.02 / std::max(once, 1e-6)));
  std::vector<double> rounds;
  for (int r = 0; r < 5; ++r) rounds.push_back(timed(n) / n);
  std::sort(rounds.begin(), rounds.end());
  return rounds[2];
}

class Table {
 public:
  void row(const std::string& what, double value, const char* unit, double seconds) {
    std::printf("%-78s %10.1f %-8s %9.3f ms\n", what.c_str(), value, unit, seconds * 1e3);
    std::fflush(stdout);
    rows_.push_back({{"what", what}, {"value", value}, {"unit", unit}, {"ms", seconds * 1e3}});
  }
  void failed(const std::string& what, const std::string& why) {
    std::printf("%-78s failed: %s\n", what.c_str(), why.c_str());
    std::fflush(stdout);
    rows_.push_back({{"what", what}, {"failed", why}});
    ++failures_;
  }
  // Runs f, which adds rows; what goes wrong becomes a row of its own and the rest is still measured.
  template <class F>
  void attempt(const std::string& what, F f) {
    try {
      f();
    } catch (const std::exception& e) { failed(what, e.what()); }
  }
  int failures() const { return failures_; }
  nlohmann::json rows() const { return rows_; }

 private:
  nlohmann::json rows_ = nlohmann::json::array();
  int failures_ = 0;
};

struct Options {
  std::map<std::string, std::string> given{{"only", "copy,vec,gemm,conv,fusion,norm,step,launch"},
                                           {"models", "resnet50,resnet18,resnet20"},
                                           {"batch", "0"},
                                           {"precision", "bf16,fp16,fp32,tf32"},
                                           {"measure", "0"},
                                           {"graphs", "on"},
                                           {"json", ""},
                                           {"describe", ""}};
  bool lists(const char* option, const std::string& word) const {
    return ("," + given.at(option) + ",").find("," + word + ",") != std::string::npos;
  }
};

Tensor noise(Shape s, DType t = kF32) {
  Tensor x(s, t, kGpu);
  fill_normal(x, {1, Purpose::kTest, 0, 0}, 0, 1);
  return x;
}

double copy_bandwidth() {  // bytes read and written a second
  const Tensor a({1 << 28}, kF32, kGpu), b({1 << 28}, kF32, kGpu);
  return 2 * double(a.bytes()) / seconds_of([&] { copy_bytes(b, a); });
}

void bench_copy(Table& t) {
  const double rate = copy_bandwidth();
  t.row("copy on the device, 1 GiB, read and written", rate / 1e9, "GB/s", 2 * double(1 << 30) / rate);
}

void bench_vectors(Table& t) {
  constexpr int64_t kMany = 25600000;
  const double copy = copy_bandwidth();
  const Tensor x = noise({kMany}), g = noise({kMany}), v = noise({kMany});
  const auto one = [&](const char* what, int passes, auto f) {
    const double s = seconds_of(f), rate = 4. * double(kMany) * passes / s;
    t.row(text(what, ", 25.6 M elements, ", int(100 * rate / copy), " % of the copy's rate"), rate / 1e9,
          "GB/s", s);
  };
  one("vec axpy", 3, [&] { axpy(x, 1e-3f, g); });
  one("vec lerp", 3, [&] { lerp(x, g, 0.1f); });
  one("vec scaled_copy", 2, [&] { scaled_copy(x, 0.5f, g); });
  one("SGD with momentum and decay, one pass", 5, [&] {
    sgd_update({.x = x, .v = v, .g = g, .at = x, .lr = 1e-3f, .mu = 0.9f, .decay = 5e-4f, .decayed = kMany});
  });
}

void bench_gemm(Table& t) {
  const int64_t sizes[][3] = {{8192, 8192, 8192}, {256, 1000, 2048}, {4096, 4096, 4096}};
  for (const auto& [m, n, k] : sizes)
    for (DType type : {kBF16, kF32}) {
      if (type == kF32 && m == 8192) continue;
      const Tensor a = noise({m, k}, type), b = noise({n, k}, type), y({m, n}, type, kGpu);
      const double s = seconds_of([&] { gemm(kGpu, {.y = y, .a = a, .b = b, .tb = true}); });
      t.row(text("product [", m, ',', k, "] x [", k, ',', n, "] ", type),
            2e-12 * double(m * n) * double(k) / s, "TFLOP/s", s);
    }
}

void bench_conv(Table& t, int64_t batch) {
  for (const testing::Layer& l : testing::resnet_layers(true, 224, true)) {
    const ConvGeometry g{l.stride, l.kernel / 2, 1, 1};
    const int64_t out = (l.side + 2 * g.padding - l.kernel) / l.stride + 1;
    const ConvArgs c{.x = noise({batch, l.side, l.side, l.in}, kBF16),
                     .w = noise({l.out, l.kernel, l.kernel, l.in}),
                     .bias = {},
                     .y = noise({batch, out, out, l.out}, kBF16),
                     .geometry = g};
    const double flop = 2. * double(c.y.size()) * double(l.in) * l.kernel * l.kernel;
    const auto one = [&](const char* pass, void (*f)(Device, const ConvArgs&)) {
      const std::string what = text("conv ", pass, " b", batch, " bf16 ", l.kernel, 'x', l.kernel, ' ', l.in,
                                    "->", l.out, " at ", l.side, " stride ", l.stride);
      t.attempt(what, [&] {
        const double s = seconds_of([&] { f(kGpu, c); });
        t.row(what, flop / s * 1e-12, "TFLOP/s", s);
      });
    };
    one("forward", conv2d_forward);
    one("data", conv2d_backward_data);
    one("weights", conv2d_backward_weights);
  }
}

// A convolution whose output is summed for a batch norm: in one kernel and apart, and what was chosen.
void bench_fusion(Table& t, int64_t batch) {
  for (const DType type : {kF16, kBF16})
    for (const testing::Layer& l : testing::resnet_layers(true, 224, true)) {
      const ConvGeometry g{l.stride, l.kernel / 2, 1, 1};
      const int64_t out = (l.side + 2 * g.padding - l.kernel) / l.stride + 1;
      const Tensor x = noise({batch, l.side, l.side, l.in}, type), y({batch, out, out, l.out}, type, kGpu);
      const Tensor w = noise({l.out, l.kernel, l.kernel, l.in});
      const ConvArgs c{.x = x, .w = w, .bias = {}, .y = y, .geometry = g};
      BatchNormArgs norm;
      norm.x = y, norm.mean = Tensor({l.out}, kF32, kGpu), norm.rstd = Tensor({l.out}, kF32, kGpu);
      const std::string what = text("conv + sums b", batch, ' ', type, ' ', l.kernel, 'x', l.kernel, ' ',
                                    l.in, "->", l.out, " at ", l.side, " stride ", l.stride);
      t.attempt(what, [&] {
        const double apart = seconds_of([&] { conv2d_forward(kGpu, c), cuda::statistics(norm); });
        bool fused = false;
        const double s = seconds_of([&] {
          norm.sums = conv2d_with_sums(kGpu, c);
          fused = bool(norm.sums.sum);
          cuda::statistics(norm);
        });
        norm.sums = {};
        t.row(what + (fused ? ", fused" : ", apart is taken"), 100 * apart / s, "% of apart's speed", s);
      });
    }
}

// A block's convolutions in f16, forward and backward: as a chain, whose norms may be left to the convolutions,
// and one op after another.
void bench_chain(Table& t, int64_t batch) {
  for (const auto& [side, width] : {std::pair<int64_t, int64_t>{56, 64}, {28, 128}, {14, 256}, {7, 512}}) {
    const std::string what = text("chain 1x1, 3x3, 1x1 b", batch, " f16 ", 4 * width, "->", width, "->",
                                  width, "->", 4 * width, " at ", side);
    t.attempt(what, [&] {
      const Tensor x = noise({batch, side, side, 4 * width}, kF16);
      std::vector<ConvBnLink> links;
      for (const auto& [out, kernel, in] :
           {std::array<int64_t, 3>{width, 1, 4 * width}, {width, 3, width}, {4 * width, 1, width}}) {
        const Tensor w = noise({out, kernel, kernel, in});
        links.push_back(
            {w, {.padding = int(kernel / 2)}, {noise({out}), noise({out}), noise({out}), noise({out})}});
      }
      const auto step = [&](bool chained) {
        Tape tape;
        for (const ConvBnLink& l : links)
          for (const Tensor& leaf : {l.w, l.norm.gamma, l.norm.shift})
            tape.watch(leaf, Tensor(leaf.shape(), kF32, kGpu));
        tape.watch(x, Tensor(x.shape(), kF16, kGpu));
        Tensor y = x;
        for (const ConvBnLink& l : links)
          if (!chained) y = conv_bn(y, l.w, l.geometry, l.norm, {.relu = true});
        tape.backward(sum(chained ? conv_bn_chain(x, links, true) : y));
      };
      const auto fused = [] {
        using cuda::ConvPass;
        return std::array{cuda::fused_runs(ConvPass::kForward, cuda::kNormalize | cuda::kSums),
                          cuda::fused_runs(ConvPass::kWeights, cuda::kNormalize),
                          cuda::fused_runs(ConvPass::kData, cuda::kNormGradient)};
      };
      const double apart = seconds_of([&] { step(false); });
      step(true);
      const auto before = fused();
      step(true);
      const auto after = fused();
      const double s = seconds_of([&] { step(true); });
      t.row(text(what, ", of 2 norms left to forward ", after[0] - before[0], ", weights ",
                 after[1] - before[1], ", data ", after[2] - before[2]),
            100 * apart / s, "% of apart's speed", s);
    });
  }
}

void bench_norm(Table& t, int64_t batch) {
  for (const auto& [side, channels] :
       {std::pair<int64_t, int64_t>{112, 64}, {56, 64}, {56, 256}, {28, 512}, {14, 1024}, {7, 2048}}) {
    const Shape s{batch, side, side, channels}, c{channels};
    BatchNormArgs a;
    a.x = noise(s, kBF16), a.y = noise(s, kBF16), a.dy = noise(s, kBF16), a.dx = noise(s, kBF16);
    for (Tensor* p :
         {&a.gamma, &a.shift, &a.running_mean, &a.running_var, &a.mean, &a.rstd, &a.dgamma, &a.dshift})
      *p = noise(c);
    a.relu = true;
    const double bytes = double(a.x.bytes());
    double time = seconds_of([&] { batch_norm_forward(kGpu, a); });
    t.row(text("batch norm + ReLU forward ", s, " bf16"), 3 * bytes / time / 1e9, "GB/s", time);
    time = seconds_of([&] { batch_norm_backward(kGpu, a); });
    t.row(text("batch norm + ReLU backward ", s, " bf16"), 5 * bytes / time / 1e9, "GB/s", time);
  }
}

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

void bench_step(Table& t, const std::string& name, int64_t batch, const std::string& precision, bool graphs) {
  batch = batch_of(name, batch);
  const std::string what = text("step ", name, " b", batch, ' ', precision, graphs ? "" : ", without graph");
  t.attempt(what, [&] {
    numerics().tf32 = precision == "tf32";
    Training training(name, batch, precision);
    Recorded step(kGpu, what);
    const double s = seconds_of([&] {
      if (graphs)
        step.run({}, [&] { training.step(); });
      else
        training.step();
    });
    CHECK(step.refused().empty(), step.refused());
    t.row(text(what, ", loss ", training.loss.item(), ", ", memory_use(kGpu).peak >> 20, " MiB at most"),
          double(batch) / s, "img/s", s);
  });
  numerics().tf32 = false;
  release_cached(kGpu);
}

// What launching costs: a step in a graph of its own against one of eight in a graph, between which nothing is
// launched; the host's time for one launch; and the step without a graph.
void bench_launch(Table& t, const std::string& name, int64_t batch, const std::string& precision) {
  constexpr int kMany = 8;
  batch = batch_of(name, batch);
  const std::string what = text(name, " b", batch, ' ', precision);
  t.attempt("launch of " + what, [&] {
    Training training(name, batch, precision);
    Recorded one(kGpu, "one step"), many(kGpu, "eight steps");
    const double alone = seconds_of([&] { one.run({}, [&] { training.step(); }); });
    const double together = seconds_of([&] {
                              many.run({}, [&] {
                                for (int i = 0; i < kMany; ++i) training.step();
                              });
                            }) /
                            kMany;
    CHECK(one.refused().empty() && many.refused().empty(), one.refused(), many.refused());
    std::vector<double> calls;
    for (int i = 0; i < 21; ++i) {
      current_stream(kGpu).sync();
      const double from = now();
      one.run({}, [&] { training.step(); });
      calls.push_back(now() - from);
    }
    std::sort(calls.begin(), calls.end());
    const double plain = seconds_of([&] { training.step(); });
    t.row(text("launch overhead of a step, ", one.length({}), " nodes, ", what),
          100 * std::max(0.0, alone - together) / alone, "%", alone - together);
    t.row(text("host's time to launch a step's graph, ", what), 1e6 * calls[10], "us", calls[10]);
    t.row(text("step with a graph, ", what), double(batch) / alone, "img/s", alone);
    t.row(text("step without, ", what), double(batch) / plain, "img/s", plain);
  });
  release_cached(kGpu);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i += 2) {
    const auto at = std::strncmp(argv[i], "--", 2) ? o.given.end() : o.given.find(argv[i] + 2);
    if (at == o.given.end() || i + 1 == argc)
      return std::fprintf(stderr,
                          "gpu_bench: %s is no option with a value; see the top of bench/cuda/gpu_bench.cc\n",
                          argv[i]),
             2;
    at->second = argv[i + 1];
  }
  if (cuda_device_count() == 0) return std::printf("skipped: no CUDA device\n"), 0;
  if (const std::string& file = o.given["describe"]; !file.empty())
    std::ofstream(file) << cuda::json_of(cuda::device_properties(0)) << '\n';
  numerics().measure = o.given["measure"] == "1";
  const int64_t batch = std::atoi(o.given["batch"].c_str()), layers = batch ? batch : 256;
  Table t;
  if (o.lists("only", "copy")) t.attempt("copy", [&] { bench_copy(t); });
  if (o.lists("only", "vec")) t.attempt("vec", [&] { bench_vectors(t); });
  if (o.lists("only", "gemm")) t.attempt("gemm", [&] { bench_gemm(t); });
  if (o.lists("only", "conv")) t.attempt("conv", [&] { bench_conv(t, layers); });
  if (o.lists("only", "fusion"))
    t.attempt("fusion", [&] { bench_fusion(t, layers), bench_chain(t, layers); });
  if (o.lists("only", "norm")) t.attempt("norm", [&] { bench_norm(t, layers); });
  release_cached(kGpu);
  if (o.lists("only", "step"))
    for (const char* model : {"resnet50", "resnet18", "resnet20", "cnn7", "vgg16-bn"})
      for (const char* precision : {"bf16", "fp16", "fp32", "tf32"})
        if (o.lists("models", model) && o.lists("precision", precision))
          bench_step(t, model, batch, precision, o.given["graphs"] != "off");
  if (o.lists("only", "launch")) bench_launch(t, "resnet20", batch, "bf16");
  if (const std::string& file = o.given["json"]; !file.empty())
    std::ofstream(file) << t.rows().dump(1) << '\n';
  return t.failures() > 0;
}
