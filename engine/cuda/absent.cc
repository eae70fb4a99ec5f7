// Replaces the other files of this folder in a build without CUDA: every call of the seam throws.
#include "engine/backend.h"
#include "engine/cuda/foreign.h"
#include "engine/cuda/graph.h"
#include "engine/device/device_group.h"
#include "engine/device/device_trouble.h"
#include "engine/raw_image.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"  // the table names its parameters

namespace skein::cuda {

[[noreturn]] static void refuse(const char* call) {
  throw Error(text("this is a CPU-only build, without cuda::", call, "; configure with the CUDA toolkit for ",
                   "--device cuda"));
}
#define PRIMITIVE(name, Args) \
  void name(const Args&) { refuse(#name); }
#define CUDA_CALL(result, name, parameters) \
  result name parameters { refuse(#name); }
#include "engine/seam.def"
int device_of_foreign(const void*) { refuse("device_of_foreign"); }

}  // namespace skein::cuda
