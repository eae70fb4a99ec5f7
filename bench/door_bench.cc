// The C++ side of bench/door: steps of a VectorWorker whose gradient function computes nothing.
//
//   door_bench PARAMETERS ALGORITHM STEPS [--zeros]
//
// The job is that of the environment (docs/launch.md). With --zeros the function writes zeros, as the Python
// package does before it calls one. Prints the milliseconds of each step on one line, those of the processor
// on a second one, and on a third one the resident memory in MB before the worker was made, after the steps,
// and at its highest in between.
#include <cstdio>
#include <fstream>
#include <string>

#include "apps/embed/job/job.h"
#include "apps/embed/vector_worker.h"
#include "bench/stopwatch.h"

using namespace skein;

namespace {

double resident(const std::string& what) {  // VmRSS: now, VmHWM: at its highest
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(what)) return std::stod(line.substr(what.size() + 1)) * 1024 / 1e6;
  throw Error("/proc/self/status does not say " + what);
}

int run(int argc, char** argv) {
  if (argc < 4) throw BadOption("usage: door_bench PARAMETERS ALGORITHM STEPS [--zeros]");
  const int64_t n = std::stoll(argv[1]);
  const int steps = std::stoi(argv[3]);
  const bool zeros = argc > 4 && argv[4] == std::string("--zeros");
  apps::EmbeddedJob job{apps::JobOptions{}};
  const Tensor x = Tensor::zeros({n});
  const double before = resident("VmRSS");
  VectorWorker worker({.x = x, .g = job.zeros(n)}, job.peers(), {.algorithm = argv[2], .lr = 0.01f});
  const auto nothing = [&](const optim::Slices&) {
    if (zeros) std::fill_n(worker.gradient().data<float>(), n, 0.f);
    return Tensor::of<float>({1}, {0.f});
  };
  std::string times, busy;
  for (int k = 0; k < steps; ++k) {
    const double from = bench::wall_seconds(), busy_from = bench::cpu_seconds();
    worker.step(nothing);
    times += text(1e3 * (bench::wall_seconds() - from), ' ');
    busy += text(1e3 * (bench::cpu_seconds() - busy_from), ' ');
  }
  std::printf("%s\n%s\n%g %g %g\n", times.c_str(), busy.c_str(), before, resident("VmRSS"),
              resident("VmHWM"));
  job.peers().barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "door_bench: %s\n", e.what());
  return 1;
}
