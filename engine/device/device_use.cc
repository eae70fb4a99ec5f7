// Whether a device can be used, and what is said when its memory runs out.
#include "engine/device/device_use.h"

#include "engine/device/device_trouble.h"
#include "engine/device/memory.h"
#include "engine/seam.h"

namespace skein {

bool built_with_cuda() { return kHasCuda; }

std::string why_no_cuda() {
  if (cuda_device_count() > 0) return "";
  if (kHasCuda) return trouble_with(cuda::look_at_driver());
  return "this program was built without CUDA; install the CUDA toolkit and build with `cmake --preset "
         "cuda`, or use "
         "--device cpu";
}

void require_usable(Device d) {
  if (!d.is_cuda()) return;
  if (const std::string why = why_no_cuda(); !why.empty()) throw Error(why);
  if (d.index < 0 || d.index >= cuda_device_count())
    throw Error(text("there is no ", d, ": the GPUs here are cuda:0 to cuda:", cuda_device_count() - 1));
  cuda::require_usable(d.index);
}

std::string describe(Device d) { return d.is_cuda() ? cuda::describe(d.index) : text(d); }

namespace {
thread_local const char* memory_for = nullptr;
}
MemoryFor::MemoryFor(const char* what) : outer_(memory_for) { memory_for = what; }
MemoryFor::~MemoryFor() { memory_for = outer_; }

OutOfMemory::OutOfMemory(Device d, int64_t asked, int64_t in_use, int64_t room, const std::string& what)
    : Error(text("out of memory on ", d, ": ", what.empty() ? "a block" : what, " of ", bytes_in_words(asked),
                 memory_for ? " for " : "", memory_for ? memory_for : "", " does not fit beside the ",
                 bytes_in_words(in_use), " in use",
                 room > 0 ? text(" of the ", bytes_in_words(room), " there are") : std::string())),
      device(d),
      asked(asked),
      in_use(in_use),
      room(room) {}

}  // namespace skein
