// The Python module skein._skein: jobs and workers over memory that Python sees. What is said of arrays, parameters and
// keywords is in skein/__init__.py; here numbers are one vector. While a call waits for peers, it does not hold the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "apps/base/together.h"
#include "apps/checkpoint/checkpoint.h"
#include "apps/embed/handing_out.h"
#include "apps/embed/python/job.h"
#include "apps/embed/vector_worker.h"
#include "engine/version.h"

namespace nb = nanobind;

namespace skein::apps {
namespace {

using Free = nb::call_guard<nb::gil_scoped_release>;
using Array = nb::ndarray<nb::c_contig, nb::device::cpu>;
using View = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Window = nb::ndarray<nb::array_api, float, nb::c_contig, nb::device::cpu>;  // knows DLPack and buffers
using Flags = std::map<std::string, std::string>;

Tensor over(void* data, int64_t elements, DType type) {
  return Tensor({elements}, type,
                std::make_shared<Storage>(data, elements * int64_t(size_of(type)), kCpu, nullptr));
}

// ---- jobs -----------------------------------------------------------------------------------------------

std::shared_ptr<EmbeddedJob> join(const std::string& place, double deadline, const std::string& transport,
                                  const std::string& seal, const std::string& wire) {
  JobOptions o;
  o.place = place, o.deadline = deadline, o.transport = transport, o.seal = seal;
  if (wire != "fp32" && wire != "bf16") throw BadOption("wire=\"" + wire + "\": fp32 or bf16");
  o.wire = wire == "bf16" ? kBF16 : kF32;
  return std::make_shared<EmbeddedJob>(o);
}

// The sum in rank order, so that all ranks get the same bits.
void average_doubles(comm::Communicator& all, const Tensor& bits) {
  const std::vector<Tensor> every = all.gather(bits, 0);
  double* mean = reinterpret_cast<double*>(bits.data<int64_t>());
  for (size_t r = 1; r < every.size(); ++r) {
    const double* theirs = reinterpret_cast<const double*>(every[r].data<int64_t>());
    for (int64_t i = 0; i < bits.size(); ++i) mean[i] += theirs[i];
  }
  if (!every.empty())
    for (int64_t i = 0; i < bits.size(); ++i) mean[i] /= double(every.size());
  all.broadcast(bits, 0);
}

void average(const EmbeddedJob& job, const Array& x) {
  if (x.dtype() != nb::dtype<float>() && x.dtype() != nb::dtype<double>())
    throw BadOption("average: an array of float32 or float64");
  const bool doubles = x.dtype() == nb::dtype<double>();
  const Tensor t = over(x.data(), int64_t(x.size()), doubles ? kI64 : kF32);
  const nb::gil_scoped_release free;
  if (doubles)
    average_doubles(job.peers(), t);
  else
    job.peers().mean(t).wait();
}

// ---- memory ---------------------------------------------------------------------------------------------

// The vectors of a worker: parameters x, or those of an array of the caller's, their gradient, and buffers.
class Memory {
 public:
  Memory(const EmbeddedJob& job, int64_t parameters, int64_t buffers, std::optional<View> x)
      : callers_(x),
        x_(x ? over(x->data(), parameters, kF32) : make(job, parameters)),
        g_(make(job, parameters)),
        buffers_(make(job, buffers)) {}

  WorkerVectors vectors() const { return {.x = x_, .g = g_, .buffers = buffers_}; }
  const Tensor& x() const { return x_; }
  const Tensor& g() const { return g_; }
  const Tensor& buffers() const { return buffers_; }
  void clear_gradient() { std::fill_n(g_.data<float>(), g_.size(), 0.f); }

 private:
  static Tensor make(const EmbeddedJob& job, int64_t n) {
    const Tensor t({n}, kF32, job.peers().allocator());
    if (n > 0) std::fill_n(t.data<float>(), n, 0.f);
    return t;
  }
  const std::optional<View> callers_;  // keeps its memory
  const Tensor x_, g_, buffers_;
};

// A window that keeps the memory alive.
template <const Tensor& (Memory::*of)() const>
Window window(nb::handle self, int64_t begin, const std::vector<size_t>& shape) {
  const Tensor& t = (nb::cast<const Memory&>(self).*of)();
  size_t size = 1;
  for (const size_t extent : shape) size *= extent;
  CHECK(begin >= 0 && begin + int64_t(size) <= t.size(), begin, size, t.size());
  return Window(t.data<float>() + begin, shape.size(), shape.data(), self);
}

// ---- workers --------------------------------------------------------------------------------------------

class PythonWorker {
 public:
  PythonWorker(std::shared_ptr<EmbeddedJob> job, const Memory& m, const WorkerOptions& o, const Flags& flags,
               const std::string& layout, const std::vector<int64_t>& sizes)
      : job_(std::move(job)), algorithm_(o.algorithm), layout_(layout), seed_(o.seed), slices_(m.g(), sizes) {
    comm::Communicator& all = job_->peers();
    together(all, [&] { check(o, flags, all.size()); });
    agree(o, flags);
    all.broadcast(m.x(), 0);
    if (m.buffers().size() > 0) all.broadcast(m.buffers(), 0);
    worker_ = std::make_unique<VectorWorker>(m.vectors(), all, o);
  }

  // `gradient` returns the loss, with the gradient in its memory.
  double step(const nb::callable& gradient) {
    const nb::gil_scoped_release free;
    const auto oracle = [&](const optim::Slices& slices) {
      slices_.begin(slices);
      const float loss = [&] {
        const nb::gil_scoped_acquire held;
        return nb::cast<float>(gradient());
      }();
      slices_.end();
      return Tensor::of<float>({1}, {loss});
    };
    try {
      return double(present().step(oracle).item());
    } catch (...) {
      slices_.abandon();
      throw;
    }
  }
  void ready(size_t parameter) { slices_.ready(parameter); }

  void save(const std::string& directory, int keep) {
    VectorWorker& w = present();
    comm::Communicator& all = job_->peers();
    w.settle();
    Checkpoints checkpoints(directory, keep);
    const int64_t k = w.steps();
    const auto first = [&](const auto& f) {
      together(all, [&] {
        if (all.rank() == 0) f();
      });
    };
    try {
      first([&] { checkpoints.begin(k); });
      together(all, [&] { checkpoints.write(k, all.rank(), [&](Archive& a) { w.visit(a); }); });
      first([&] { checkpoints.commit(k, identity()); });
    } catch (const Error&) {
      if (all.rank() == 0) checkpoints.abandon(k);
      throw;
    }
  }

  void load(const std::string& path) {
    VectorWorker& w = present();
    comm::Communicator& all = job_->peers();
    w.settle();
    together(all, [&] {
      load_checkpoint(find_checkpoint(path), all.rank(), identity(), [&](Archive& a) { w.visit(a); });
    });
  }

  std::map<std::string, double> figures() const {
    const comm::Traffic t = job_->peers().meter().traffic();
    return {{"steps", double(present().steps())},
            {"messages", double(t.messages)},
            {"bytes", double(t.bytes)},
            {"waited_s", t.waited},
            {"in_flight_s", t.in_flight}};
  }

  VectorWorker& present() const {
    if (job_->left() || !worker_) throw Error("this worker's job has been left");
    return *worker_;
  }

 private:
  static void check(const WorkerOptions& o, const Flags& flags, int world) {
    const optim::Values known = optim::values_in_force(o.algorithm, o.flags, world);
    for (const auto& [name, value] : flags)
      if (!known.contains(name)) {
        std::string all;
        for (const auto& [flag, in_force] : known) all += (all.empty() ? "" : ", ") + flag;
        throw BadOption(text(o.algorithm, " does not read ", name, "; what it reads: ", all));
      }
  }

  // One of them with another number of parameters, or another algorithm, would leave the others waiting.
  void agree(const WorkerOptions& o, const Flags& flags) const {
    std::string mine = text(o.algorithm, " over ", layout_, ", lr ", o.lr, ", momentum ", o.momentum,
                            ", weight decay ", o.weight_decay, ", nesterov ", o.nesterov, ", seed ", o.seed);
    for (const auto& [name, value] : flags) mine += text(", ", name, ' ', value);
    comm::Communicator& all = job_->peers();
    const std::string first = from_rank_zero(all, mine);
    together(all, [&] {
      if (mine != first) throw BadOption("worker 0 makes " + first + "; this worker makes " + mine);
    });
  }

  Identity identity() const {
    return {.model = "parameters",
            .layout = layout_,
            .algorithm = algorithm_,
            .world = job_->peers().size(),
            .data = "of the caller",
            .seed = seed_,
            .global_batch = 0};
  }

  const std::shared_ptr<EmbeddedJob> job_;
  const std::string algorithm_, layout_;
  const uint64_t seed_;
  HandingOut slices_;
  std::unique_ptr<VectorWorker> worker_;
};

std::unique_ptr<PythonWorker> make_worker(std::shared_ptr<EmbeddedJob> job, const Memory& m,
                                          const std::string& algorithm, float lr, float momentum,
                                          float weight_decay, bool nesterov, uint64_t seed,
                                          const Flags& flags, const std::string& layout,
                                          const std::vector<int64_t>& sizes) {
  WorkerOptions o{.algorithm = algorithm,
                  .lr = lr,
                  .momentum = momentum,
                  .weight_decay = weight_decay,
                  .nesterov = nesterov,
                  .seed = seed,
                  .flags = {}};
  for (const auto& [name, value] : flags) o.flags.set(name, value);
  return std::make_unique<PythonWorker>(std::move(job), m, o, flags, layout, sizes);
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names;
  for (const optim::StrategyRow& row : optim::strategies()) names.push_back(row.name);
  return names;
}

}  // namespace

NB_MODULE(_skein, m) {
  nb::set_leak_warnings(
      false);  // a hook that is registered at a tensor keeps its worker until the interpreter ends
  m.attr("__version__") = version();
  const nb::exception<Error> error(m, "Error", PyExc_RuntimeError);
  nb::exception<BadOption>(m, "BadOption", nb::make_tuple(error, nb::handle(PyExc_ValueError)));
  nb::exception<BadFile>(m, "BadFile", nb::make_tuple(error, nb::handle(PyExc_OSError)));
  nb::exception<comm::PeerLost>(m, "PeerLost", nb::make_tuple(error, nb::handle(PyExc_ConnectionError)));
  nb::exception<comm::Timeout>(m, "Timeout", nb::make_tuple(error, nb::handle(PyExc_TimeoutError)));
  m.def("algorithms", &algorithms);

  nb::class_<EmbeddedJob>(m, "Job")
      .def_static("join", &join, nb::arg("place"), nb::arg("deadline"), nb::arg("transport"), nb::arg("seal"),
                  nb::arg("wire"), Free())
      .def("leave", &EmbeddedJob::leave, Free())
      .def_prop_ro("rank", [](const EmbeddedJob& j) { return j.peers().rank(); })
      .def_prop_ro("world", [](const EmbeddedJob& j) { return j.peers().size(); })
      .def_prop_ro("left", &EmbeddedJob::left)
      .def_prop_ro("local_rank", &EmbeddedJob::local_rank)
      .def_prop_ro("ways", &EmbeddedJob::ways)
      .def(
          "barrier", [](const EmbeddedJob& j) { j.peers().barrier(); }, Free())
      .def("average", &average);

  nb::class_<Memory>(m, "Memory")
      .def(nb::init<const EmbeddedJob&, int64_t, int64_t, std::optional<View>>(), nb::arg("job"),
           nb::arg("parameters"), nb::arg("buffers"), nb::arg("x").none())
      .def("parameters", &window<&Memory::x>)
      .def("gradients", &window<&Memory::g>)
      .def("buffers", &window<&Memory::buffers>)
      .def("clear_gradient", &Memory::clear_gradient);

  nb::class_<PythonWorker>(m, "Worker")
      .def(nb::new_(&make_worker), nb::arg("job"), nb::arg("memory"), nb::arg("algorithm"), nb::arg("lr"),
           nb::arg("momentum"), nb::arg("weight_decay"), nb::arg("nesterov"), nb::arg("seed"),
           nb::arg("flags"), nb::arg("layout"), nb::arg("sizes"), nb::keep_alive<1, 3>(), Free())
      .def("step", &PythonWorker::step)
      .def("ready", &PythonWorker::ready)
      .def("set_rate", [](PythonWorker& w, float lr) { w.present().set_rate(lr); })
      .def(
          "show_model", [](PythonWorker& w) { w.present().show_model(); }, Free())
      .def(
          "hide_model", [](PythonWorker& w) { w.present().hide_model(); }, Free())
      .def(
          "finish", [](PythonWorker& w) { return w.present().finish(); }, Free())
      .def("save", &PythonWorker::save, Free())
      .def("load", &PythonWorker::load, Free())
      .def("figures", &PythonWorker::figures);
}

}  // namespace skein::apps
