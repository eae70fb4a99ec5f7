// Convolutions of models: GFLOP/s of the plain sum by our direct kernel, by Winograd (where it fits, else
// direct again) and by oneDNN; then the better of ours against the peak and oneDNN. At the end, what the way
// that the engine chooses loses to the fastest one. Of depthwise and other grouped convolutions by ours for
// these, where they fit. resnext50-dense: those of resnext50 as if they were of one group, beside which the
// grouped ones are measured.
//
//   conv_bench [MODEL] [BATCH] [fp32|bf16] [THREADS] [only input CHANNELS]
//
// Seconds are processor seconds divided by threads, the least of several runs: a loaded machine delays them
// but does not lengthen them.
#include <omp.h>

#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <set>

#include "bench/peaks.h"
#include "engine/cpu/conv_way.h"
#include "engine/cpu/depthwise_conv.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/grouped_conv.h"
#include "engine/cpu/winograd.h"

using namespace skein;

namespace {

struct Layer {
  int64_t channels, outputs, window, stride, size, groups = 1;
  auto operator<=>(const Layer&) const = default;
};

// The grouped ones of MobileNetV3-like nets (a channel a group) and of ResNeXt-50 32x4d.
std::map<Layer, int> grouped_layers_of(const std::string& model) {
  std::map<Layer, int> all;
  if (model != "mobilenet") {
    const int64_t groups = model == "resnext50" ? 32 : 1;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const int64_t width = 128 << stage, size = 56 >> stage;
      all[{width, width, 3, 1, size, groups}] = 2;
      if (stage) all[{width, width, 3, 2, 2 * size, groups}] = 1;
    }
    return all;
  }
  for (const int64_t window : {3, 5, 7}) {
    all[{64, 64, window, 2, 112, 64}] = 1;
    all[{72, 72, window, 1, 56, 72}] = 1;
    all[{240, 240, window, 1, 28, 240}] = 1;
    all[{512, 512, window, 1, 14, 512}] = 1;
    all[{960, 960, window, 2, 14, 960}] = 1;
  }
  return all;
}

std::map<Layer, int> layers_of(const std::string& model) {
  if (model == "mobilenet" || model.starts_with("resnext50")) return grouped_layers_of(model);
  std::map<Layer, int> all;
  if (model == "resnet20") {
    all[{3, 16, 3, 1, 32}]++;
    for (int64_t stage = 0, in = 16; stage < 3; ++stage)
      for (int64_t block = 0; block < 3; ++block) {
        const int64_t out = 16 << stage, size = 32 >> stage, stride = stage && !block ? 2 : 1;
        all[{in, out, 3, stride, size * stride}]++;
        all[{out, out, 3, 1, size}]++;
        in = out;
      }
    return all;
  }
  const bool deep = model == "resnet50";
  all[{3, 64, 7, 2, 224}]++;
  const int64_t blocks[] = {deep ? 3 : 2, deep ? 4 : 2, deep ? 6 : 2, deep ? 3 : 2};
  for (int64_t stage = 0, in = 64; stage < 4; ++stage)
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t width = 64 << stage, stride = stage && !block ? 2 : 1, size = (56 >> stage) * stride;
      const int64_t out = deep ? 4 * width : width;
      if (deep) {
        all[{in, width, 1, 1, size}]++;
        all[{width, width, 3, stride, size}]++;
        all[{width, out, 1, 1, size / stride}]++;
      } else {
        all[{in, width, 3, stride, size}]++;
        all[{width, width, 3, 1, size / stride}]++;
      }
      if (in != out) all[{in, out, 1, stride, size}]++;
      in = out;
    }
  return all;
}

ConvArgs make(const Layer& l, int64_t batch, DType t) {
  const int padding = int(l.window / 2);
  const int64_t out = (l.size + 2 * padding - l.window) / l.stride + 1;
  ConvArgs c;
  c.x = Tensor::zeros({batch, l.size, l.size, l.channels}, t);
  c.w = Tensor::zeros({l.outputs, l.window, l.window, l.channels / l.groups});
  c.y = Tensor::zeros({batch, out, out, l.outputs}, t);
  c.geometry = {.stride = int(l.stride), .padding = padding, .groups = int(l.groups)};
  return c;
}

// What the engine's choices lose.
class Verdict {
 public:
  void add(const std::string& what, int count, double chosen, double fastest) {
    constexpr double kNoise = 1.05;
    all_ += chosen * count, lost_ += (chosen - fastest) * count;
    if (chosen <= kNoise * fastest) return;
    char line[160];
    std::snprintf(line, sizeof line, "  %s: %.2f times the fastest, %.1f ms\n", what.c_str(),
                  chosen / fastest, (chosen - fastest) * count * 1e3);
    lines_ += line;
  }
  void print() const {
    std::printf("as chosen %.1f ms, of which the fastest ways would save %.1f%%\n%s", all_ * 1e3,
                100 * lost_ / all_, lines_.c_str());
  }

 private:
  double all_ = 0, lost_ = 0;  // seconds
  std::string lines_;
};

double least_seconds(const std::function<void()>& f, int threads) {
  f();
  double least = 1e30;
  for (int i = 0; i < 3; ++i) {
    const double from = bench::cpu_seconds();
    f();
    least = std::min(least, (bench::cpu_seconds() - from) / threads);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto word = [&](int i, const char* otherwise) { return std::string(argc > i ? argv[i] : otherwise); };
  const std::string model = word(1, "resnet50"), type = word(3, "fp32");
  const std::set<std::string> models = {"resnet50",  "resnet20",  "resnet18",
                                        "mobilenet", "resnext50", "resnext50-dense"};
  const int64_t batch = atoi(word(2, "8").c_str()), channels = atoi(word(5, "0").c_str());
  const int threads = atoi(word(4, "1").c_str());
  if (!models.contains(model) || (type != "fp32" && type != "bf16") || batch < 1 || threads < 1 || argc > 6) {
    std::fprintf(stderr, "usage: conv_bench [MODEL] [BATCH] [fp32|bf16] [THREADS] [CHANNELS]; models are");
    for (const std::string& one : models) std::fprintf(stderr, " %s", one.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const DType t = type == "bf16" ? kBF16 : kF32;
  omp_set_num_threads(threads);
  const double peak = bench::fma_gflops(t);
  std::printf("%s b%ld %s, %d threads, %s, a thread's peak %.0f GFLOP/s\n", model.c_str(), long(batch),
              name_of(t), threads, cpu::describe().c_str(), peak);
  using Run = void (*)(const ConvArgs&);
  const Run direct[] = {cpu::direct_forward, cpu::direct_backward_data, cpu::direct_backward_weights};
  const Run depthwise[] = {cpu::depthwise_forward, cpu::depthwise_backward_data,
                           cpu::depthwise_backward_weights};
  const Run grouped[] = {cpu::grouped_forward, cpu::grouped_backward_data, cpu::grouped_backward_weights};
  const Run library[] = {cpu::onednn_forward, cpu::onednn_backward_data, cpu::onednn_backward_weights};
  const Run fast[] = {cpu::winograd_forward, cpu::winograd_backward_data, cpu::winograd_backward_weights};
  const char* names[] = {"forward", "data", "weights"};
  double total[2][3] = {};
  Verdict verdict;
  bool any = false;
  for (const auto& [layer, count] : layers_of(model)) {
    if (channels && layer.channels != channels) continue;
    any = true;
    const ConvArgs c = make(layer, batch, t);
    const double flop = 2. * double(c.y.size() * c.w.size() / layer.outputs);
    std::string shape = text(layer.channels, '>', layer.outputs, ' ', layer.window, 'x', layer.window, '/',
                             layer.stride, " @", layer.size);
    if (layer.groups > 1) shape += text(" in ", layer.groups, " groups");
    std::printf("%s x%d", shape.c_str(), count);
    for (int pass = 0; pass < 3; ++pass) {
      if (pass == 1 && layer.channels == 3) continue;
      const Run mine = layer.groups == 1      ? direct[pass]
                       : cpu::is_depthwise(c) ? depthwise[pass]
                       : cpu::grouped_fits(c) ? grouped[pass]
                                              : library[pass];
      const double ours = least_seconds([&] { mine(c); }, threads);
      const double theirs = least_seconds([&] { library[pass](c); }, threads);
      const double third = cpu::winograd_fits(c) ? least_seconds([&] { fast[pass](c); }, threads) : ours;
      total[0][pass] += std::min(ours, third) * count, total[1][pass] += theirs * count;
      const double best = std::min(ours, third);
      const cpu::ConvWay way = cpu::way_of(c, cpu::ConvPass(pass));
      const double chosen = way == cpu::ConvWay::kOneDnn     ? theirs
                            : way == cpu::ConvWay::kWinograd ? third
                                                             : ours;
      verdict.add(text(names[pass], ' ', shape), count, chosen, std::min(best, theirs));
      std::printf(" | %s %.0f %.0f %.0f, %.0f%% %.2fx", names[pass], flop / ours / 1e9, flop / third / 1e9,
                  flop / theirs / 1e9, 100 * flop / threads / best / 1e9 / peak, theirs / best);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  if (!any) {
    std::fprintf(stderr, "%s has no convolution of %ld channels\n", model.c_str(), long(channels));
    return 2;
  }
  for (int pass = 0; pass < 3; ++pass)
    std::printf("%s: ours %.1f ms, oneDNN %.1f ms, %.2fx\n", names[pass], total[0][pass] * 1e3,
                total[1][pass] * 1e3, total[1][pass] / total[0][pass]);
  verdict.print();
  int reference = 0;
  for (const std::string& choice : cpu::onednn_choices())
    if (choice.find("ref") != std::string::npos)
      ++reference, std::printf("REFERENCE CODE: %s\n", choice.c_str());
  return reference ? 1 : 0;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
