// An array that comes by DLPack from a GPU has been asked for in the calling thread's stream, which therefore
// waits for what its library has queued.
#include "apps/embed/python/memory.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

#include "apps/embed/job/averages.h"
#include "engine/device/device_use.h"
#include "engine/device/foreign.h"

namespace nb = nanobind;

namespace skein::apps {
namespace {

using Array = nb::ndarray<nb::c_contig>;
using Source = nb::ndarray<const float, nb::c_contig>;

// Pinned memory is the host's, managed memory that of the GPU it is bound to.
Device device_of(int type, int index) {
  if (type == nb::device::cpu::value || type == nb::device::cuda_host::value) return kCpu;
  if (type == nb::device::cuda::value || type == nb::device::cuda_managed::value)
    return {Device::kCuda, index};
  throw BadOption(
      text("arrays on the host or on a CUDA device are wanted, not on DLPack's device type ", type));
}

template <class A>
Tensor over(const A& a, DType type) {
  void* const data = const_cast<void*>(static_cast<const void*>(a.data()));
  const int64_t n = int64_t(a.size());
  const Device d = device_of(a.device_type(), a.device_id());
  return Tensor({n}, type, std::make_shared<Storage>(data, n * int64_t(size_of(type)), d, nullptr));
}

Window array_of(const Tensor& t, int64_t begin, const std::vector<size_t>& shape, nb::handle owner) {
  size_t size = 1;
  for (const size_t extent : shape) size *= extent;
  CHECK(begin >= 0 && begin + int64_t(size) <= t.size(), begin, size, t.size());
  const Device d = t.device();
  return {t.data<float>() + begin,
          shape.size(),
          shape.data(),
          owner,
          nullptr,
          nb::dtype<float>(),
          d.is_cuda() ? nb::device::cuda::value : nb::device::cpu::value,
          d.index};
}

// A window that keeps the memory alive.
template <const Tensor& (Memory::*of)() const>
Window window(nb::handle self, int64_t begin, const std::vector<size_t>& shape) {
  return array_of((nb::cast<const Memory&>(self).*of)(), begin, shape, self);
}

void finish_work(Device d) {
  if (d.is_cuda()) current_stream(d).sync();
}

// Doubles are added on the host.
void average_in_place(comm::Communicator& all, const Tensor& x) {
  if (!x || x.dtype() == kF32) return average_floats(all, x);
  const Tensor here = x.to(kCpu);
  average_doubles(all, here);
  copy_bytes(x, here);
}

// Averages an array. Without one that can be averaged it takes part all the same, so that every worker
// gets the error.
void average(EmbeddedJob& job, const std::optional<Array>& x) {
  const bool singles = x && x->dtype() == nb::dtype<float>(),
             doubles = x && x->dtype() == nb::dtype<double>();
  const Tensor t = singles || doubles ? over(*x, doubles ? kI64 : kF32) : Tensor();
  const nb::gil_scoped_release free;
  finish_work(t.device());
  job.call([&](comm::Communicator& all) { average_in_place(all, t); });
  finish_work(t.device());
}

// The source may be gone when this returns.
void copy_into(const View& to, const Source& from) {
  CHECK(to.size() == from.size(), to.size(), from.size());
  const Tensor y = over(to, kF32), x = over(from, kF32);
  copy_bytes(y, x);
  finish_work(y.device()), finish_work(x.device());
}

std::string trouble_with(int device) {
  if (!built_with_cuda())
    return "this package was built for CPUs only; docs/python.md says how it is built for GPUs";
  if (std::string why = why_no_cuda(); !why.empty()) return why;
  if (device >= cuda_device_count()) return text("the number of CUDA devices here is ", cuda_device_count());
  return "";
}

uintptr_t stream(int device) {
  return reinterpret_cast<uintptr_t>(current_stream({Device::kCuda, device}).handle());
}

// Memory that its owner describes by __cuda_array_interface__, with the stream in which it was written, if
// there is one.
Window array_at(uintptr_t address, const std::vector<size_t>& shape, std::optional<uintptr_t> stream,
                nb::handle owner) {
  if (const std::string why = trouble_with(0); !why.empty()) throw BadOption("an array on a GPU: " + why);
  void* const data = reinterpret_cast<void*>(address);
  const Device d = device_of_foreign(data);
  if (stream) wait_for_foreign(d, reinterpret_cast<void*>(*stream));
  int64_t size = 1;
  for (const size_t extent : shape) size *= int64_t(extent);
  const auto memory = std::make_shared<Storage>(data, size * int64_t(sizeof(float)), d, nullptr);
  return array_of(Tensor({size}, kF32, memory), 0, shape, owner);
}

}  // namespace

Memory::Memory(const EmbeddedJob& job, int64_t parameters, int64_t buffers, std::optional<View> x, int device)
    : callers_(std::move(x)),
      device_(callers_      ? device_of(callers_->device_type(), callers_->device_id())
              : device >= 0 ? Device{Device::kCuda, device}
                            : kCpu),
      x_(callers_ ? over(*callers_, kF32) : job.zeros(parameters, device_)),
      g_(job.zeros(parameters, device_)),
      buffers_(job.zeros(buffers, device_)) {}

// On the host memset takes less than a pass over the vector does (bench/door).
void Memory::clear_gradient() {
  if (device_.is_host())
    std::memset(g_.raw(), 0, size_t(g_.bytes()));
  else
    fill(g_, 0.f);
}
void Memory::wait_for(uintptr_t stream) const { wait_for_foreign(device_, reinterpret_cast<void*>(stream)); }
void Memory::finish() const { finish_work(device_); }

void define_memory(nb::module_& m) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Memory>(m, "Memory")
      .def(nb::init<const EmbeddedJob&, int64_t, int64_t, std::optional<View>, int>(), nb::arg("job"),
           nb::arg("parameters"), nb::arg("buffers"), nb::arg("x").noconvert().none(), nb::arg("device"))
      .def("parameters", &window<&Memory::x>)
      .def("gradients", &window<&Memory::g>)
      .def("buffers", &window<&Memory::buffers>)
      .def("clear_gradient", &Memory::clear_gradient)
      .def("wait_for", &Memory::wait_for)
      .def("finish", &Memory::finish, Free());
  m.def("average", &average, nb::arg("job"), nb::arg("array").noconvert().none());
  m.def("copy_into", &copy_into, nb::arg("to").noconvert(), nb::arg("from").noconvert());
  m.def("trouble_with", &trouble_with);
  m.def("stream", &stream);
  m.def("array_at", &array_at, nb::arg("address"), nb::arg("shape"), nb::arg("stream").none(),
        nb::arg("owner"));
}

}  // namespace skein::apps
