// Benchmarks of one GPU: copy bandwidth, vector kernels, products, convolutions by layer, norms, whole steps.
//
//   gpu_bench [--only copy,vec,gemm,conv,fusion,norm,step,launch] [--models resnet50,resnet18,resnet20]
//             [--batch N] [--precision bf16,fp16,fp32,tf32] [--measure 1] [--graphs on|off] [--profile 1]
//             [--json FILE] [--describe FILE]
//
// --measure 1 lets convolutions choose the fastest of cuDNN's plans, not its first choice. --describe writes
// cuDNN's description of the device, with which plans can be made without one. --graphs off launches every
// kernel of a step separately; on, the default, replays a CUDA graph, as training does. --profile 1 runs one
// plain step for a profiler, and nothing else.
//
// Timed by seconds_of() in bench/stopwatch.h.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "bench/cuda/gpu_bench.h"
#include "engine/cuda/batch_norm.h"
#include "engine/numerics.h"
#include "engine/ops.h"
#include "engine/random.h"
#include "engine/vectors/vec.h"
#include "tests/cuda/conv_shapes.h"

using namespace skein;
using namespace skein::bench;

Tensor bench::noise(Shape s, DType t) {
  Tensor x(s, t, kGpu);
  fill_normal(x, {1, Purpose::kTest, 0, 0}, 0, 1);
  return x;
}

namespace {

struct Options {
  std::map<std::string, std::string> given{{"only", "copy,vec,gemm,conv,fusion,norm,step,launch"},
                                           {"models", "resnet50,resnet18,resnet20"},
                                           {"batch", "0"},
                                           {"precision", "bf16,fp16,fp32,tf32"},
                                           {"measure", "0"},
                                           {"graphs", "on"},
                                           {"profile", "0"},
                                           {"json", ""},
                                           {"describe", ""}};
  bool lists(const char* option, const std::string& word) const {
    return ("," + given.at(option) + ",").find("," + word + ",") != std::string::npos;
  }
};

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
    t.row(text(what, ", 25.6 M elements"), rate / 1e9, "GB/s", s,
          text(int(100 * rate / copy), " % of the copy's rate"));
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
    double time = seconds_of([&] { cuda::statistics(a); });
    t.row(text("batch norm's statistics ", s, " bf16"), bytes / time / 1e9, "GB/s", time);
    time = seconds_of([&] { batch_norm_forward(kGpu, a); });
    t.row(text("batch norm + ReLU forward ", s, " bf16"), 3 * bytes / time / 1e9, "GB/s", time);
    time = seconds_of([&] { batch_norm_backward(kGpu, a); });
    t.row(text("batch norm + ReLU backward ", s, " bf16"), 5 * bytes / time / 1e9, "GB/s", time);
  }
}

}  // namespace

int main(int argc, char** argv) try {
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
  Table t(o.given["json"]);
  if (o.lists("only", "copy")) t.attempt("copy", [&] { bench_copy(t); });
  if (o.lists("only", "vec")) t.attempt("vec", [&] { bench_vectors(t); });
  if (o.lists("only", "gemm")) t.attempt("gemm", [&] { bench_gemm(t); });
  if (o.lists("only", "conv")) t.attempt("conv", [&] { bench_conv(t, layers); });
  if (o.lists("only", "fusion")) t.attempt("fusion", [&] { bench_fusion(t, layers); });
  if (o.lists("only", "norm")) t.attempt("norm", [&] { bench_norm(t, layers); });
  release_cached(kGpu);
  const StepWay way = o.given["profile"] == "1"    ? StepWay::kProfiled
                      : o.given["graphs"] == "off" ? StepWay::kPlain
                                                   : StepWay::kGraph;
  if (o.lists("only", "step"))
    for (const char* model : {"resnet50", "resnet18", "resnet20", "cnn7", "vgg16-bn"})
      for (const char* precision : {"bf16", "fp16", "fp32", "tf32"})
        if (o.lists("models", model) && o.lists("precision", precision))
          bench_step(t, model, batch, precision, way);
  if (o.lists("only", "launch")) bench_launch(t, "resnet20", batch, "bf16");
  return t.failures() > 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "gpu_bench: %s\n", e.what());
  return 1;
}
