// The C++ side of test_rows.py: VectorWorkers in a simulated world, with the gradients that Python recorded.
//   recorded_gradients WORLD_FILE RECORD ROW STEPS ELEMENTS MODEL [FLAG=VALUE...]
// RECORD holds f32 numbers: the start [ELEMENTS], then for each step of each rank x [ELEMENTS], the gradient
// [ELEMENTS] and the loss. Parameters that differ by a bit from the recorded ones at any step end it with
// status 1. MODEL gets the model, f32.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "apps/embed/vector_worker.h"
#include "apps/launch/simulated.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

struct Record {
  std::vector<float> numbers;
  int64_t steps = 0, elements = 0;
  const float* of(int rank, int64_t step) const {
    return numbers.data() + elements + (rank * steps + step) * (2 * elements + 1);
  }
};

Record read(const std::string& path, int64_t steps, int64_t elements) {
  const std::string bytes = read_file(path);
  Record r{std::vector<float>(bytes.size() / sizeof(float)), steps, elements};
  std::memcpy(r.numbers.data(), bytes.data(), bytes.size());
  return r;
}

Tensor gradient(const Record& r, const Member& me, const VectorWorker& w, const optim::Slices& slices) {
  const float* at = r.of(me.rank, w.steps());
  const Tensor &x = w.parameters(), &g = w.gradient();
  if (std::memcmp(x.data<float>(), at, size_t(x.bytes())) != 0)
    throw Error(text("worker ", me.rank, ", step ", w.steps(), ": other parameters than in Python"));
  std::copy_n(at + r.elements, r.elements, g.data<float>());
  comm::sim::Pace& pace = me.simulated->pace;
  pace.begin();
  if (slices) {
    pace.forward(1), pace.backward(1);
    me.comm.progress();
    slices.ready(g), slices.complete();
  } else {
    pace.whole();
  }
  return Tensor::of<float>({1}, {at[2 * r.elements]});
}

void train(const Record& r, const Member& me, const WorkerOptions& o, const std::string& model) {
  const Tensor x({r.elements}), g = Tensor::zeros({r.elements});
  std::copy_n(r.numbers.data(), r.elements, x.data<float>());
  VectorWorker worker({.x = x, .g = g}, me.comm, o);
  me.comm.barrier();
  while (worker.steps() < r.steps)
    worker.step([&](const optim::Slices& slices) { return gradient(r, me, worker, slices); });
  worker.finish();
  if (me.rank == 0)
    write_file(model, std::string(reinterpret_cast<const char*>(x.data<float>()), size_t(x.bytes())));
}

int run(int argc, char** argv) {
  const Record record = read(argv[2], std::stoll(argv[4]), std::stoll(argv[5]));
  WorkerOptions o{.algorithm = argv[3], .lr = 0.05f};
  for (int i = 7; i < argc; ++i) {
    const std::string flag = argv[i];
    o.flags.set(flag.substr(0, flag.find('=')), flag.substr(flag.find('=') + 1));
  }
  const auto work = [&](const Member& me) { return train(record, me, o, argv[6]), 0; };
  JobOptions job;
  job.deadline = 86400;  // of virtual time
  return run_simulated(job, read_world(argv[1]), work, {.silent = true});
}

}  // namespace
}  // namespace skein::apps

int main(int argc, char** argv) {
  return skein::apps::status_of("recorded_gradients", [&] { return skein::apps::run(argc, argv); });
}
