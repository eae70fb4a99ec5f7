// What the sections of gpu_bench share: the table they fill, tensors of noise, the clock.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "bench/stopwatch.h"
#include "engine/tensor.h"

namespace skein::bench {

inline constexpr Device kGpu{Device::kCuda, 0};

template <class F>
double seconds_of(const F& f, const Effort& effort = {}) {
  return seconds_of(kGpu, f, effort);
}
Tensor noise(Shape, DType = kF32);  // on the GPU

class Table {
 public:
  // JSON, rewritten with every row; may be empty.
  explicit Table(std::string file) : file_(std::move(file)) {}
  // `what` is the same in every run, so that runs can be compared; what differs goes into the note.
  void row(const std::string& what, double value, const char* unit, double seconds,
           const std::string& note = "");
  void failed(const std::string& what, const std::string& why);
  // Runs f, which adds rows. An error becomes a row, and the rest is still measured.
  template <class F>
  void attempt(const std::string& what, F f) {
    try {
      f();
    } catch (const std::exception& e) { failed(what, e.what()); }
  }
  int failures() const { return failures_; }

 private:
  void keep(nlohmann::json row);
  const std::string file_;
  nlohmann::json rows_ = nlohmann::json::array();
  int failures_ = 0;
};

// Compares fused convolutions with separate kernels.
void bench_fusion(Table&, int64_t batch);
enum class StepWay { kGraph, kPlain, kProfiled };
// Whole steps of a model. `batch` 0: the model's usual one. kProfiled: after a warm-up, a profiler sees only
// one plain step (ncu --profile-from-start off).
void bench_step(Table&, const std::string& model, int64_t batch, const std::string& precision, StepWay);
// Measures what launching steps costs.
void bench_launch(Table&, const std::string& model, int64_t batch, const std::string& precision);

}  // namespace skein::bench
