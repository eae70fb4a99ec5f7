// The Python module skein._skein: jobs and workers over memory that Python sees. Arrays, parameters and
// keywords are handled in skein/__init__.py; here all numbers are one vector. A call that waits for peers
// releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "apps/embed/job/job_worker.h"
#include "apps/embed/python/memory.h"
#include "apps/embed/python/parts.h"
#include "apps/embed/python/simulating.h"
#include "comm/communicator/words.h"
#include "engine/version.h"

namespace nb = nanobind;

namespace skein::apps {
namespace {

using Free = nb::call_guard<nb::gil_scoped_release>;

// ---- jobs -----------------------------------------------------------------------------------------------

std::shared_ptr<EmbeddedJob> join(const std::string& place, double deadline, const std::string& transport,
                                  const std::string& seal, const std::string& wire, bool elastic) {
  JobOptions o;
  o.elastic = elastic;
  o.place = place, o.deadline = deadline, o.transport = transport, o.seal = seal;
  if (wire != "fp32" && wire != "bf16") throw BadOption("wire=\"" + wire + "\": fp32 or bf16");
  o.wire = wire == "bf16" ? kBF16 : kF32;
  return std::make_shared<EmbeddedJob>(o);
}

// ---- workers --------------------------------------------------------------------------------------------

// A worker and its memory, which arrays in Python may share.
struct PythonWorker {
  std::shared_ptr<const Memory> memory;
  JobWorker worker;
  nb::object gradient = {};  // the last one

  // `f` writes the gradient to its vector and returns the loss.
  double step(nb::callable f) {
    gradient = std::move(f);
    const nb::gil_scoped_release free;
    return worker.step([this] {
      const nb::gil_scoped_acquire held;
      return nb::cast<float>(gradient());
    });
  }
};

std::unique_ptr<PythonWorker> make_worker(std::shared_ptr<EmbeddedJob> job,
                                          std::shared_ptr<const Memory> memory, const std::string& algorithm,
                                          const std::string& optimizer, std::optional<float> lr,
                                          std::optional<float> weight_decay, uint64_t seed,
                                          const optim::Values& flags, const std::string& layout,
                                          const std::vector<int64_t>& sizes, int64_t count,
                                          const std::vector<Part>& parts) {
  WorkerVectors v = memory->vectors();
  v.count = count, v.segments = segments_of(parts, v.x.device());
  const JobWorkerOptions o{algorithm, optimizer, lr, weight_decay, seed, flags, layout, sizes};
  return std::unique_ptr<PythonWorker>(new PythonWorker{memory, {std::move(job), v, o}});
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names;
  for (const optim::StrategyRow& row : optim::strategies()) names.push_back(row.name);
  return names;
}

std::map<std::string, optim::Values> optimizers() {
  std::map<std::string, optim::Values> all;
  for (const optim::RuleRow& row : optim::rules()) all[row.name] = defaults_of_rule(row.name);
  return all;
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
  nb::exception<comm::EpochEnds>(m, "WorkersChanged", nb::handle(error));
  m.def("algorithms", &algorithms);
  m.def("optimizers", &optimizers);
  define_simulate(m);
  m.attr("BLOCK") = Segments::kBlock;  // of parameters under an optimizer that sees their segments

  nb::class_<EmbeddedJob>(m, "Job")
      .def_static("join", &join, nb::arg("place"), nb::arg("deadline"), nb::arg("transport"), nb::arg("seal"),
                  nb::arg("wire"), nb::arg("elastic"), Free())
      .def("leave", &EmbeddedJob::leave, Free())
      .def_prop_ro("rank", [](const EmbeddedJob& j) { return j.peers().rank(); })
      .def_prop_ro("world", [](const EmbeddedJob& j) { return j.peers().size(); })
      .def_prop_ro("left", &EmbeddedJob::left)
      .def_prop_ro("local_rank", &EmbeddedJob::local_rank)
      .def_prop_ro("ways", &EmbeddedJob::ways)
      .def(
          "barrier", [](const EmbeddedJob& j) { j.call([](auto& all) { all.barrier(); }); }, Free());
  define_memory(m);

  nb::class_<PythonWorker>(m, "Worker")
      .def(nb::new_(&make_worker), nb::arg("job"), nb::arg("memory"), nb::arg("algorithm"),
           nb::arg("optimizer"), nb::arg("lr").none(), nb::arg("weight_decay").none(), nb::arg("seed"),
           nb::arg("flags"), nb::arg("layout"), nb::arg("sizes"), nb::arg("count"), nb::arg("parts"), Free())
      .def("step", &PythonWorker::step)
      .def("ready", [](PythonWorker& w, size_t parameter) { w.worker.ready(parameter); })
      .def_prop_ro("steps", [](const PythonWorker& w) { return w.worker.steps(); })
      .def("set_rate", [](PythonWorker& w, float lr) { w.worker.set_rate(lr); })
      .def(
          "show_model", [](PythonWorker& w) { w.worker.show_model(); }, Free())
      .def(
          "hide_model", [](PythonWorker& w) { w.worker.hide_model(); }, Free())
      .def(
          "finish", [](PythonWorker& w) { return w.worker.finish(); }, Free())
      .def(
          "save", [](PythonWorker& w, const std::string& to, int keep) { w.worker.save(to, keep); }, Free())
      .def(
          "load", [](PythonWorker& w, const std::string& from) { w.worker.load(from); }, Free())
      .def("figures", [](const PythonWorker& w) { return w.worker.figures(); });
}

}  // namespace skein::apps
