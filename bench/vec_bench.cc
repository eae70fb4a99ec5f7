// The passes over flat vectors: the bytes each moves, its rate, and the share of the rate of copying the same
// memory in the same run.
//
//   vec_bench [--device cpu|cuda] [--elements 25600000] [--json FILE]
//
// Timed by seconds_of() in bench/stopwatch.h. Each pass is compared with copies right before and after it,
// because a shared machine changes from minute to minute.
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/stopwatch.h"
#include "engine/random.h"
#include "engine/vectors/gem.h"
#include "engine/vectors/mixing.h"
#include "engine/vectors/narrow.h"

using namespace skein;
using bench::seconds_of;

namespace {

struct Pass {
  const char* name;
  double bytes;  // read and written an element
  std::function<void()> run;
};

int measure(Device d, int64_t n, const std::string& json) {
  const auto noise = [&](DType t = kF32) {
    const Tensor x({n}, t, d);
    fill_normal(x, {1, Purpose::kTest, 0, 0}, 0, 1);
    return x;
  };
  const Tensor x = noise(), y = noise(), z = noise(), g = noise(), m = noise(), s = noise(), u = noise(),
               low = noise(kBF16), kept = x.clone();
  keep_narrow(kept, kBF16);
  const auto sgd = [&](const Tensor& at) {
    sgd_update({.x = at, .v = m, .g = g, .at = at, .lr = 1e-3f, .mu = 0.9f, .decay = 5e-4f, .decayed = n});
  };
  const auto gem = [&](const Tensor& to) {
    gem_update({.x = x,
                .m = m,
                .s = s,
                .u = to,
                .pi = {},
                .g = g,
                .theta = z,
                .lr = 1e-3f,
                .mu = 0.9f,
                .kappa = 1.f,
                .decay = 5e-4f,
                .decayed = n});
  };
  const Pass passes[] = {
      {"axpy", 12, [&] { axpy(x, 1e-3f, g); }},
      {"lerp", 12, [&] { lerp(x, g, 0.1f); }},
      {"SGD: momentum, decay", 20, [&] { sgd(x); }},
      {"SGD that writes the bf16 copy, too", 22, [&] { sgd(kept); }},
      {"GEM", 36, [&] { gem(u); }},
      {"GEM that writes its bf16 message", 34, [&] { gem(low); }},
      {"GEM, then its bf16 message", 42, [&] { gem(u), copy(low, u); }},
      {"push-sum: a share for the wire, f32", 8, [&] { scaled_copy(y, 0.5f, x); }},
      {"push-sum: a share for the wire, bf16", 6, [&] { scaled_copy(low, 0.5f, x); }},
      {"push-sum: add one message, de-bias", 16,
       [&] { mix({.y = y, .x = x, .self = 0.5f, .in = {g}, .z = z, .by = 1.1f}); }},
      {"push-sum: add one bf16 message, de-bias", 14,
       [&] { mix({.y = y, .x = x, .self = 0.5f, .in = {low}, .z = z, .by = 1.1f}); }},
      {"push-sum: the same with error feedback", 16,
       [&] {
         mix({.y = y, .x = x, .self = 0.5f, .in = {g}, .sent = {0.5f}, .wire = kBF16, .z = z, .by = 1.1f});
       }},
      {"push-sum: error feedback, a bf16 message", 14,
       [&] {
         mix({.y = y, .x = x, .self = 0.5f, .in = {low}, .sent = {0.5f}, .wire = kBF16, .z = z, .by = 1.1f});
       }},
      {"push-sum: that, the message widened first", 22,
       [&] {
         copy(u, low);
         mix({.y = y, .x = x, .self = 0.5f, .in = {u}, .sent = {0.5f}, .wire = kBF16, .z = z, .by = 1.1f});
       }},
      {"elastic pull of all", 20, [&] { elastic_pull(x, z, m, 0.1f, 0.2f); }},
      {"elastic pull at the center", 16, [&] { elastic_commit(z, y, x, 0.1f); }},
      {"half way: AD-PSGD", 16, [&] { go_half_way(x, y, z, true); }},
      {"outer step: SlowMo, BMUF, DiLoCo", 24,
       [&] { outer_step({.z = z, .m = m, .mean = g, .x = x, .decay = 0.9f, .gain = 0.1f, .along = 0.1f}); }},
  };
  const auto copying = [&] { return seconds_of(d, [&] { copy_bytes(y, x); }); };
  const auto rate_of = [&](double seconds) { return 8 * double(n) / seconds; };
  nlohmann::json rows;
  double before = copying();
  std::printf("%-44s %8.1f GB/s\n", text("copy of ", n, " elements on ", d).c_str(), rate_of(before) / 1e9);
  rows.push_back({{"what", text("copy of ", n, " elements")},
                  {"value", rate_of(before) / 1e9},
                  {"unit", "GB/s"},
                  {"ms", before * 1e3}});
  for (const Pass& p : passes) {
    const double seconds = seconds_of(d, p.run), after = copying(), rate = p.bytes * double(n) / seconds;
    const double share = rate / rate_of((before + after) / 2);
    std::printf("%-44s %8.1f GB/s  %5.1f %% of a copy  %8.3f ms\n", p.name, rate / 1e9, 100 * share,
                seconds * 1e3);
    std::fflush(stdout);
    rows.push_back({{"what", text(p.name, ", share of a copy's rate")},
                    {"value", 100 * share},
                    {"unit", "%"},
                    {"ms", seconds * 1e3}});
    before = after;
  }
  if (!json.empty()) std::ofstream(json) << rows.dump(1) << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string device = "cpu", json;
  int64_t n = 25600000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--device") device = argv[i + 1];
    if (flag == "--elements") n = std::stoll(argv[i + 1]);
    if (flag == "--json") json = argv[i + 1];
  }
  if (device == "cuda" && cuda_device_count() == 0) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  return measure(device == "cuda" ? Device{Device::kCuda, 0} : kCpu, n, json);
} catch (const std::exception& e) {
  std::fprintf(stderr, "vec_bench: %s\n", e.what());
  return 1;
}
