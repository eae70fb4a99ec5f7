// cuBLASLt by dlopen.
#include "engine/cuda/cublas_library.h"

namespace skein::cuda {
namespace {

#define SKEIN_TEXT_OF(x) #x
#define SKEIN_TEXT(x) SKEIN_TEXT_OF(x)
constexpr const char *kName = "cuBLASLt", *kFile = "libcublasLt.so." SKEIN_TEXT(CUBLAS_VER_MAJOR),
                     *kPackage = "libcublas-13-0";

Cublas open() {
  void* library = open_library(kName, kFile, kPackage);
  Cublas c;
#define ROW(name) c.name = reinterpret_cast<decltype(c.name)>(find_function(library, kName, #name, "12.0"));
  SKEIN_CUBLAS_FUNCTIONS(ROW)
#undef ROW
  return c;
}

}  // namespace

const Cublas& cublas() {
  static const Cublas c = open();
  return c;
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(text("cuBLASLt: ", what, " failed: ", cublas().cublasLtGetStatusString(status)));
}

}  // namespace skein::cuda
