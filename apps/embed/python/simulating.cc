// The world's threads take the GIL to call Python and give it back before they wait for each other.
#include "apps/embed/python/simulating.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <future>

#include "apps/embed/job/simulation.h"
#include "apps/embed/python/parts.h"

namespace nb = nanobind;

namespace skein::apps {
namespace {

using Start = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Read = nb::ndarray<nb::array_api, const float, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<nb::array_api, float, nb::c_contig, nb::device::cpu>;

constexpr auto kGlance = std::chrono::milliseconds(50);  // between two looks for Ctrl-C

// An array that keeps the tensor's memory.
template <class Window>
Window array_of(const Tensor& t) {
  const size_t size = size_t(t.size());
  const nb::capsule owner(new Tensor(t), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  return Window(t.data<float>(), 1, &size, owner);
}

nb::dict dict_of(const SimulatedMoment& m) {
  nb::dict d;
  d["step"] = m.step, d["seconds"] = m.seconds, d["bytes"] = m.bytes, d["loss"] = m.loss;
  return d;
}

// Python sees signals in its main thread only, so the world has one of its own and this one looks for Ctrl-C.
SimulatedResult simulate_interruptibly(const SimulatedTask& t, std::atomic<bool>& interrupted) {
  const nb::gil_scoped_release free;
  std::future<SimulatedResult> result = std::async(std::launch::async, [&] { return simulate(t); });
  while (result.wait_for(kGlance) != std::future_status::ready) {
    const nb::gil_scoped_acquire held;
    if (interrupted || PyErr_CheckSignals() == 0) continue;
    nb::python_error signal;
    interrupted = true;
    {
      const nb::gil_scoped_release again;
      result.wait();
    }
    throw signal;
  }
  return result.get();
}

// gradient(x, g, rank, step) -> loss; look(moment, mean)
nb::dict simulate_python(const std::string& world, const Start& start, int64_t steps, int64_t every,
                         const nb::callable& gradient, const nb::callable& look, const std::string& algorithm,
                         const std::string& optimizer, std::optional<float> lr,
                         std::optional<float> weight_decay, uint64_t seed, const optim::Values& flags,
                         int64_t count, const std::vector<Part>& parts) {
  std::atomic<bool> interrupted = false;
  const Tensor x({int64_t(start.size())});
  std::copy_n(start.data(), start.size(), x.data<float>());
  SimulatedTask t;
  t.start = x, t.world = world, t.steps = steps, t.every = every;
  t.count = count, t.segments = segments_of(parts);
  t.worker = {algorithm, optimizer, lr, weight_decay, seed, flags};
  t.gradient = [&](int rank, int64_t step, const Tensor& at, const Tensor& g) {
    if (interrupted) throw Error("interrupted");
    const nb::gil_scoped_acquire held;
    return nb::cast<float>(gradient(array_of<Read>(at), array_of<Written>(g), rank, step));
  };
  t.look = [&](const SimulatedMoment& m, const Tensor& mean) {
    const nb::gil_scoped_acquire held;
    look(dict_of(m), array_of<Read>(mean));
  };
  const SimulatedResult r = simulate_interruptibly(t, interrupted);
  nb::dict d;
  for (const auto& [name, value] : r.figures) d[name.c_str()] = value;
  d["workers"] = r.workers, d["model"] = array_of<Read>(r.model);
  return d;
}

}  // namespace

void define_simulate(nb::module_& m) {
  m.def("simulate", &simulate_python, nb::arg("world"), nb::arg("start"), nb::arg("steps"), nb::arg("every"),
        nb::arg("gradient"), nb::arg("look"), nb::arg("algorithm"), nb::arg("optimizer"),
        nb::arg("lr").none(), nb::arg("weight_decay").none(), nb::arg("seed"), nb::arg("flags"),
        nb::arg("count"), nb::arg("parts"));
}

}  // namespace skein::apps
